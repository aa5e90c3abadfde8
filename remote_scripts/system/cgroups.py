"""Which container and which systemd unit a process belongs to, by its control group's path."""

from __future__ import annotations

import re

_CONTAINER = re.compile(r"([^/]*?)[-:/]([0-9a-f]{64})(?:\.scope)?(?=/|$)")
"""docker-<id>.scope, /docker/<id>, cri-containerd-<id>.scope, crio-<id>, libpod-<id>.scope, /kubepods/.../<id>."""
_UNIT = re.compile(r"/([^/]+\.service)(?=/|$)")
_SCOPE = re.compile(r"/([^/]+\.scope)(?=/|$)")


def container_of(cgroup: str) -> tuple[str, str] | None:
    """Runtime ("docker", "libpod", a parent group's name) and 64-digit id in /proc/PID/cgroup's text.

    None outside containers. The innermost counts.
    """
    for path in _paths(cgroup):
        found = _CONTAINER.findall(path)
        if found:
            runtime, identity = found[-1]
            return str(runtime), str(identity)
    return None


def unit_of(cgroup: str) -> str | None:
    """The systemd unit in /proc/PID/cgroup's text: the innermost service, or else the scope. None without one."""
    for path in _paths(cgroup):
        found = _UNIT.findall(path) or _SCOPE.findall(path)
        if found:
            return str(found[-1])
    return None


def is_deleted(cgroup: str) -> bool:
    """The kernel marks a group that was removed under a process that still stands in it."""
    return any(path.endswith(" (deleted)") for path in _paths(cgroup))


def _paths(cgroup: str) -> list[str]:
    """The paths, longest first: with v1 and hybrid hierarchies most controllers stand at the root."""
    paths = [line.split(":", 2)[2] for line in cgroup.splitlines() if line.count(":") >= 2]
    return sorted(set(paths), key=lambda path: (-len(path), path))
