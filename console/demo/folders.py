"""The demo's private folder: made anew each time, locked while it is in use, swept where its process was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

PREFIX = "droplet-console-demo-"
_LOCK = "in-use"
_RANDOM = 8
"""Letters that tempfile adds to the prefix."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder in use.

    Attributes:
        path: Its owner's alone.
        lock: A descriptor; the lock goes with it, and with this process.
    """

    path: Path
    lock: int

    def release(self) -> None:
        """It is in use no more."""
        with contextlib.suppress(OSError):
            os.close(self.lock)


def make() -> Folder:
    """A new folder below the system's own for temporary files."""
    path = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return Folder(path, lock)


def sweep() -> None:
    """Remove what demos that were killed left behind: folders of ours that nobody holds."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if not path.is_symlink() and path.is_dir() and path.stat().st_uid == os.geteuid() and not in_use(path):
                shutil.rmtree(path)
    for shared in Path("/dev/shm").glob(f"{PREFIX}*-*"):  # noqa: S108 - a real Triton's, killed with its demo
        folder = Path(tempfile.gettempdir(), shared.name[: len(PREFIX) + _RANDOM])
        with contextlib.suppress(OSError):
            if shared.stat().st_uid == os.geteuid() and not folder.exists():
                shared.unlink()


def in_use(path: Path) -> bool:
    """Whether a living demo holds the folder; one that is just being made counts."""
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
