"""Where the lab keeps what is slow to build, and the locks that let several runs share it.

The cache lies outside every clone, so that a second clone on the same machine finds everything built. What is in
it is named by a hash of its recipe: a changed recipe is a new name, never a changed content.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE_VARIABLE = "DROPLET_CONSOLE_LAB_CACHE"
DEFAULT_CACHE = Path("/var/cache/droplet-console-lab")
STATE = Path("/run/droplet-console-lab")
"""What lives no longer than the machine is up, and is one for all caches: claims on networks."""


def cache_folder() -> Path:
    """The lab's cache: ``$DROPLET_CONSOLE_LAB_CACHE``, or one folder for the whole machine."""
    return Path(os.environ.get(CACHE_VARIABLE) or DEFAULT_CACHE)


def recipe_key(recipe: object) -> str:
    """A short name for a recipe: 12 hex digits of the SHA-256 of its JSON."""
    text = json.dumps(recipe, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def take_lock(path: Path, *, wait: bool) -> int | None:
    """Take an exclusive lock that ends with this process, however it ends.

    Args:
        path: The lock file; made where it is missing, never removed here.
        wait: False to give up at once where somebody holds it.

    Returns:
        The open file descriptor (closing it frees the lock), or None.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` for a while; waits for it."""
    descriptor = take_lock(path, wait=True)
    assert descriptor is not None  # it waited
    try:
        yield
    finally:
        os.close(descriptor)
