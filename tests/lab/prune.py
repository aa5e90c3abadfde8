"""Taking out of the cache what no recipe has asked for in a while."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from tests.lab.cache import cache_folder

KEPT_DAYS = 14
"""Other clones on this machine, at other versions, may still want it."""


def mark_used(path: Path) -> None:
    """Remember that something in the cache was used just now."""
    os.utime(path)


def prune(now: float | None = None) -> list[Path]:
    """Remove the roots and images that were last used more than ``KEPT_DAYS`` days ago.

    Args:
        now: Unix seconds; the clock's where left out.

    Returns:
        What was removed.
    """
    oldest = (time.time() if now is None else now) - KEPT_DAYS * 24 * 3600
    entries = [path for kind in ("roots", "images") for path in (cache_folder() / kind).glob("*")]
    old = [path for path in entries if path.stat().st_mtime < oldest and not path.name.startswith(".")]
    for path in old:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return old
