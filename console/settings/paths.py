"""Where the settings are: --config, then $DROPLET_CONSOLE_CONFIG, then the platform's config folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "DROPLET_CONSOLE_CONFIG"


@dataclass(frozen=True, slots=True)
class Place:
    """A settings file.

    Attributes:
        path: The file.
        asked_by: What named it ("--config", "$DROPLET_CONSOLE_CONFIG"); None for the default, which may be missing.
    """

    path: Path
    asked_by: str | None


def find(option: str | None, environment: Mapping[str, str] = os.environ) -> Place:
    """The settings file to read.

    Args:
        option: The value of ``--config``, or None.
        environment: The process's environment.
    """
    if option is not None:
        return Place(Path(option).expanduser(), "--config")
    if environment.get(VARIABLE):
        return Place(Path(environment[VARIABLE]).expanduser(), f"${VARIABLE}")
    import platformdirs  # only here: a file that was named needs no search

    return Place(platformdirs.user_config_path("droplet-console", appauthor=False) / "config.yaml", None)
