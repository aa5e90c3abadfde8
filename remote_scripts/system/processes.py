"""What /proc tells of a process: name, parent, control group, command line. Small reads, bounded."""

from __future__ import annotations

import os
from collections.abc import Sequence

from remote_scripts.call import Call
from remote_scripts.files import cut, read_bytes, read_text
from remote_scripts.system.cgroups import container_of, is_deleted, unit_of
from remote_scripts.triton.processes import read_stat

INITIAL_NAMESPACE = "pid:[4026531836]"
"""The host's own process ids (kernel, proc_ns.h PROC_PID_INIT_INO)."""
STUB = "triton_python_backend_stub"
"""Triton's Python backend runs each model instance in a process of this name."""


class Process:
    """One process as it stood when it was looked at.

    Attributes:
        name: its command's name, as ps shows it.
        parent: its parent's process id.
        started: ticks since boot; with the process id it tells a process from a later one of the same id.
        zombie: True where it has ended and nobody has taken note.
        runtime: the container's runtime by its control group ("docker"), where it is in one.
        container: the container's 64-digit id.
        unit: the systemd unit, outside containers.
        stub: True where it is a Python backend's stub.
        model: the Triton model, where the stub's command line tells.
        cut_off: True where its control group was removed under it.
    """

    __slots__ = ("container", "cut_off", "model", "name", "parent", "runtime", "started", "stub", "unit", "zombie")

    def __init__(self, started: int) -> None:
        self.name = ""
        self.parent = 0
        self.started = started
        self.zombie = False
        self.runtime = ""
        self.container: str | None = None
        self.unit: str | None = None
        self.model: str | None = None
        self.stub = False
        self.cut_off = False


class Processes:
    """Looks processes up under the droplet's /proc, each once: a command line and a control group seldom change."""

    def __init__(self, call: Call) -> None:
        self._proc = str(call.resolve("/proc"))
        self._known: dict[int, Process] = {}
        self._seen: set[int] = set()
        self._real = str(call.root) == "/"

    def host_ids(self) -> bool:
        """Whether process ids here are the host's: NVML counts in those, whatever namespace it is asked from."""
        try:
            return os.readlink(f"{self._proc}/self/ns/pid") == INITIAL_NAMESPACE  # noqa: PTH115 - text, not a path
        except OSError:
            return True

    def look(self, pid: int) -> Process | None:
        """The process, or None where there is none of this id."""
        stat = read_stat(self._proc, pid)
        if stat is None:
            self._known.pop(pid, None)
            return None
        known = self._known.get(pid)
        if known is None or known.started != stat.start:
            known = Process(stat.start)
            self._read_rest(pid, known)
            self._known[pid] = known
        self._seen.add(pid)
        known.parent = stat.parent
        known.zombie = not stat.alive
        return known

    def uses_gpu(self, pid: int) -> bool:
        """Whether it has the driver mapped: in a container, a host's process id may be somebody else's here."""
        try:
            maps = read_bytes(f"{self._proc}/{pid}/maps", 1 << 22)
        except OSError:
            return False
        return b"libcuda" in maps or b"/dev/nvidia" in maps

    def hidden(self, pid: int) -> bool:
        """Whether it is there though /proc does not show it (the mount option hidepid, for another user)."""
        if not self._real or pid <= 0:
            return False
        try:
            os.kill(pid, 0)
        except PermissionError:
            return True
        except OSError:
            return False
        return False

    def forget(self) -> None:
        """Drops what is known of the processes that were not looked at since the last time."""
        for pid in [pid for pid in self._known if pid not in self._seen]:
            del self._known[pid]
        self._seen.clear()

    def _read_rest(self, pid: int, process: Process) -> None:
        process.name = cut(self._text(pid, "comm").rstrip("\n"))
        cgroup = self._text(pid, "cgroup")
        container = container_of(cgroup)
        if container is None:
            unit = unit_of(cgroup)
            process.unit = None if unit is None else cut(unit)
        else:
            process.runtime, process.container = container
        process.cut_off = is_deleted(cgroup)
        arguments = self._text(pid, "cmdline").split("\0")
        process.stub = arguments[0].rpartition("/")[2] == STUB
        process.model = stub_model(arguments)
        program = arguments[0].rpartition("/")[2]
        if program.startswith(process.name) and " " not in program:
            # The kernel keeps 15 characters of a name.
            process.name = cut(program)

    def _text(self, pid: int, file: str) -> str:
        try:
            return read_text(f"{self._proc}/{pid}/{file}", 1 << 14)
        except OSError:
            return ""


def stub_model(arguments: Sequence[str]) -> str | None:
    """The model that a Python backend's stub runs, from its command line; None for any other process.

    Seen on server 2.51.0: the stub's path, the model's file (``repo/echo/1/model.py``), five more, the instance's
    name (``echo_0_0``; the model's name while its config is completed), the runtime. Backends that are made of
    Python (vLLM) name their own file there, and a repository in a bucket a temporary folder: then the instance's
    name is left, ``<model>_<group>_<number>`` unless the config names the group otherwise.
    """
    if len(arguments) < 2 or arguments[0].rpartition("/")[2] != STUB:
        return None
    instance = arguments[8] if len(arguments) > 8 else ""
    folders = arguments[1].split("/")
    if len(folders) >= 3 and folders[-2].isdigit() and (not instance or instance.startswith(folders[-3])):
        return cut(folders[-3])
    parts = instance.rsplit("_", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit() and parts[0]:
        return cut(parts[0])
    return cut(instance) or None
