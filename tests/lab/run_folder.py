"""What one lab run (one process) owns: a folder for its droplets, a network, and keys.

Its lock ends with the process, however it ends; the next run finds what is left and removes it.
"""

from __future__ import annotations

import atexit
import os
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tests.lab.cache import cache_folder, locked, take_lock
from tests.lab.leftovers import sweep
from tests.lab.network import Network, claim_network
from tests.lab.users import make_keys


@dataclass(frozen=True, slots=True)
class Run:
    """One lab run.

    Attributes:
        folder: Where its droplets lie, in the cache.
        network: Its network.
        keys: The private keys by account.
    """

    folder: Path
    network: Network
    keys: dict[str, Path]


@lru_cache(maxsize=1)
def run_folder() -> Run:
    """This process's run; made at the first call, removed when the process ends."""
    runs = cache_folder() / "runs"
    folder = runs / str(os.getpid())
    with locked(cache_folder() / "locks" / "runs"):
        sweep(runs)
        lock = take_lock(folder / "lock", wait=False)
    if lock is None:
        raise RuntimeError(f"{folder} is held by another process")
    network = claim_network()
    run = Run(folder, network, make_keys(folder / "keys"))
    atexit.register(_end, run, lock, os.getpid())
    return run


def _end(run: Run, lock: int, process: int) -> None:
    if process != os.getpid():
        return  # a forked copy
    # Droplets register their own end after this and so have ended before it.
    run.network.close()
    shutil.rmtree(run.folder, ignore_errors=True)
    os.close(lock)
