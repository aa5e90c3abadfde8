"""Removing what lab runs left behind that were killed before they could clean up."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.lab import cgroup
from tests.lab.cache import take_lock
from tests.lab.overlay import unmount


def sweep(runs: Path) -> None:
    """Remove every run below ``runs`` whose process is gone: its containers, its mounts, its files.

    A run is alone where nobody holds its lock; its network is taken over by whoever claims its number next.
    """
    for folder in sorted(runs.glob("*")):
        lock = take_lock(folder / "lock", wait=False)
        if lock is None:
            continue
        for root in folder.glob("*/root"):
            cgroup.end(root.parent.name)
            shutil.rmtree(f"/run/systemd/nspawn/propagate/{root.parent.name}", ignore_errors=True)
        for mount in _mounts_below(folder):
            unmount(mount)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _mounts_below(folder: Path) -> list[Path]:
    """Mount points in a folder, deepest first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = [Path(line.split()[1]) for line in lines]
    return sorted((point for point in points if folder in point.parents), reverse=True)
