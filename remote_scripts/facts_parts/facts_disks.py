"""File systems: where they are mounted, how big they are, and how much is left."""

from __future__ import annotations

import os
import re
from typing import Any

from remote_scripts.facts_parts.facts_part import Part
from remote_scripts.files import cut

_LOCAL = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "vfat", "bcachefs"}
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "9p", "virtiofs"}
_OCTAL = re.compile(r"\\([0-7]{3})")
_MAX = 64


def read(part: Part) -> list[dict[str, Any]]:
    """With ``mount``, ``device``, ``type``, ``read_only``; local ones with ``total``, ``free``, ``inodes_free``.

    A network file system is named and not measured: asking a dead server hangs where no signal reaches.
    """
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for line in part.text("/proc/self/mounts", 1 << 20).splitlines():
        words = line.split(" ")
        if len(words) < 4:
            continue
        device, mount, kind, options = (_plain(word) for word in words[:4])
        root = mount == "/"
        is_fuse = kind.startswith("fuse.")
        measured = not (kind in _NETWORK or is_fuse)
        if measured and not root and (kind not in _LOCAL or device in seen or _is_file(part, mount)):
            continue
        seen.add(device)
        entry: dict[str, Any] = {
            "mount": cut(mount),
            "device": cut(device),
            "type": cut(kind),
            "read_only": "ro" in options.split(","),
        }
        place = f"/{len(found)}"
        found.append(entry)
        if not measured:
            part.miss(f"{place}/total", "it is on the network, and asking could hang")
            continue
        try:
            state = os.statvfs(part.call.resolve(mount))
        except OSError as error:
            part.miss(f"{place}/total", f"{cut(mount)} cannot be asked: {error.strerror}")
            continue
        entry["total"] = state.f_blocks * state.f_frsize
        entry["free"] = state.f_bavail * state.f_frsize
        entry["inodes_free"] = state.f_favail
        if len(found) >= _MAX:
            break
    return found


def _is_file(part: Part, mount: str) -> bool:
    """A single file can be bound over another; its file system is listed where it is mounted itself."""
    return part.call.resolve(mount).is_file()


def _plain(word: str) -> str:
    """The kernel writes spaces and the like in mount points as octal (proc(5))."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), word)
