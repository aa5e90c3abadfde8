"""Mounting overlays."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def mount_overlay(target: Path, layers: Sequence[Path], *, upper: Path, work: Path) -> None:
    """Mount ``layers`` (lowest first, never changed) at ``target``, with every change going to ``upper``."""
    for folder in (target, upper, work):
        folder.mkdir(parents=True, exist_ok=True)
    lower = ":".join(str(layer) for layer in reversed(layers))
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    subprocess.run(["mount", "-t", "overlay", "droplet-console-lab", "-o", options, str(target)], check=True)


def unmount(target: Path) -> None:
    """Unmount ``target`` if something is mounted there, even where it is in use."""
    while target.is_mount():
        subprocess.run(["umount", "--lazy", str(target)], check=True)


@contextmanager
def mounted_overlay(target: Path, layers: Sequence[Path], *, upper: Path, work: Path) -> Iterator[None]:
    """``mount_overlay`` for a while."""
    mount_overlay(target, layers, upper=upper, work=work)
    try:
        yield
    finally:
        unmount(target)
