"""What a droplet's root lies on: an overlay on the cached layers, or a file system image that can lose its power.

Ending a droplet's processes proves nothing about fsync: what they wrote stays in the kernel's page cache. An
``ImageDisk`` is a real ext4 on a loop device; ``cut`` takes what the block device has at that moment.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.lab.cache import cache_folder, locked
from tests.lab.overlay import mount_overlay, mounted_overlay, unmount
from tests.lab.prune import mark_used

IMAGE_SIZE = "4G"
"""Sparse: it takes what is in it."""

EXT4_IOC_SHUTDOWN = 0x8004587D
SHUTDOWN_NO_LOG_FLUSH = 2
"""linux/fs/ext4/ext4.h: stop at once; nothing more reaches the block device, the journal included."""


class Disk(Protocol):
    """A droplet's disk."""

    def mount(self, target: Path) -> None:
        """Show its files at ``target``."""

    def unmount(self, target: Path) -> None:
        """Show them no more, whoever still looks."""

    def flush(self, target: Path) -> None:
        """Bring what was written so far to the device, where there is one."""


class OverlayDisk:
    """Cached layers below, what the droplet writes in a folder of its own. There at once."""

    def __init__(self, layers: Sequence[Path], folder: Path) -> None:
        self._layers = layers
        self._folder = folder

    def mount(self, target: Path) -> None:
        """As ``Disk``."""
        mount_overlay(target, self._layers, upper=self._folder / "upper", work=self._folder / "work")

    def unmount(self, target: Path) -> None:
        """As ``Disk``."""
        unmount(target)

    def flush(self, target: Path) -> None:
        """Nothing to do: the power of an overlay cannot be cut."""


class ImageDisk:
    """An ext4 image on a loop device, a copy of one made from the cached layers."""

    def __init__(self, layers: Sequence[Path], folder: Path) -> None:
        self._image = folder / "disk.ext4"
        folder.mkdir(parents=True, exist_ok=True)
        _copy(_template(layers), self._image)

    def mount(self, target: Path) -> None:
        """As ``Disk``; replays the journal after a cut."""
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-o", "loop", str(self._image), str(target)], check=True)

    def unmount(self, target: Path) -> None:
        """As ``Disk``."""
        unmount(target)

    def flush(self, target: Path) -> None:
        """As ``Disk``."""
        subprocess.run(["sync", "--file-system", str(target)], check=True)

    def stop(self, target: Path) -> None:
        """Cut the power: from now on nothing that is mounted at ``target`` reaches the block device."""
        descriptor = os.open(target, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", SHUTDOWN_NO_LOG_FLUSH))
        finally:
            os.close(descriptor)

    def keep_what_the_device_has(self, target: Path) -> None:
        """After ``stop``: unmount, and go on with a copy of the device that was taken before that."""
        copy = self._image.with_suffix(".cut")
        _copy(self._image, copy)
        unmount(target)
        copy.rename(self._image)


def _template(layers: Sequence[Path]) -> Path:
    image = cache_folder() / "images" / f"{layers[-1].name}-{IMAGE_SIZE}.ext4"
    if not image.exists():
        with locked(cache_folder() / "locks" / image.name):
            if not image.exists():
                _make_image(layers, image)
    mark_used(image)
    return image


def _make_image(layers: Sequence[Path], image: Path) -> None:
    image.parent.mkdir(parents=True, exist_ok=True)
    work = image.with_name(f".building-{image.name}")
    made = image.with_name(f".made-{image.name}")
    made.unlink(missing_ok=True)
    with mounted_overlay(work / "root", layers, upper=work / "upper", work=work / "work"):
        command = ["mkfs.ext4", "-q", "-L", "lab", "-d", str(work / "root"), str(made), IMAGE_SIZE]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    made.rename(image)


def _copy(source: Path, target: Path) -> None:
    command = ["cp", "--sparse=always", "--reflink=auto", str(source), str(target)]
    subprocess.run(command, check=True)
