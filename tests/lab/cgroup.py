"""A control group of its own for each droplet.

Without one, every container that is not registered with a systemd outside gets the same group, ``/payload``: their
systemds would share one tree, and stopping a service in one droplet would kill its namesake in all others.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

PARENT = "droplet-console-lab"
CONTROLLERS = ("cpu", "io", "memory", "pids")


def make(name: str) -> list[Path]:
    """Make the groups of a droplet, in each hierarchy that systemd uses.

    Returns:
        The files to which a process writes its id to enter them.
    """
    files = []
    for mount, unified in _hierarchies():
        group = mount / PARENT / name
        group.mkdir(parents=True, exist_ok=True)
        if unified:
            _offer_controllers(mount)
            _offer_controllers(group.parent)
        files.append(group / "cgroup.procs")
    return files


def end(name: str, timeout: float = 5.0) -> None:
    """Kill every process of a droplet, wait until the last one is gone, and remove the groups.

    Raises:
        RuntimeError: They do not go.
    """
    deadline = time.monotonic() + timeout
    for group in (mount / PARENT / name for mount, unified in _hierarchies() if unified):
        if not group.exists():
            continue
        (group / "cgroup.kill").write_text("1")
        while "populated 1" in (group / "cgroup.events").read_text():
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes of lab droplet {name} do not end: they are listed below {group}")
            time.sleep(0.01)
    remove(name)


def remove(name: str) -> None:
    """Remove the groups of a droplet whose processes have ended."""
    for mount, _ in _hierarchies():
        group = mount / PARENT / name
        folders = sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True)
        for folder in [*folders, group]:
            with suppress(OSError):  # a process may still be on its way out; an empty group hurts nobody
                folder.rmdir()


def _hierarchies() -> list[tuple[Path, bool]]:
    """Where cgroup v2 and systemd's own v1 hierarchy are mounted, and whether it is the v2 one."""
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [
        (Path(point), kind == "cgroup2")
        for _, point, kind, options, *_ in lines
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(","))
    ]


def _offer_controllers(group: Path) -> None:
    """Let the groups below use what controllers there are; v1 may have taken them all."""
    there = (group / "cgroup.controllers").read_text().split()
    for controller in set(CONTROLLERS).intersection(there):
        (group / "cgroup.subtree_control").write_text(f"+{controller}")
