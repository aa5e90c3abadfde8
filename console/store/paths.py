"""Where this side keeps what it must remember: one folder that only its owner can enter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "DROPLET_CONSOLE_STATE"


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder: ``$DROPLET_CONSOLE_STATE``, else the platform's (Linux: ~/.local/state/droplet-console)."""
    if environment.get(VARIABLE):
        return Path(environment[VARIABLE]).expanduser()
    import platformdirs  # only here: a folder that was named needs no search

    return platformdirs.user_state_path("droplet-console", appauthor=False)


def known_hosts_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Host keys that the user accepted, in OpenSSH's format; the user's own known_hosts is never written."""
    return state_folder(environment) / "known_hosts"


def make_private(folder: Path) -> None:
    """Make ``folder`` and its parents; the folder itself is entered by its owner alone.

    Raises:
        OSError: It cannot be made, or is somebody else's.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
