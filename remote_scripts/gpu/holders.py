"""Who holds memory on a GPU: process, container, unit, Triton server, model, and whether any of them lives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remote_scripts.call import Call
from remote_scripts.gpu.nvml_processes import Held
from remote_scripts.system.containers import Containers
from remote_scripts.system.processes import Process, Processes

MAX_HOLDERS = 256
"""Processes of one GPU that are named; what is beyond is counted in the reason."""
ANCESTORS = 6
"""How far up a process's parents its server is looked for."""
NOT_OURS = "NVML counts in the host's process ids, which mean nothing inside this container"
HIDDEN = "/proc hides other users' processes from this user (hidepid)"
UNSAID = "the driver does not say how much"
GONE = "no such process"


class Holders:
    """Names the holders. One per stream: it remembers who a process was when only its memory is left."""

    def __init__(self, call: Call) -> None:
        self._processes = Processes(call)
        self._containers = Containers(call)
        self._named: dict[int, dict[str, Any]] = {}
        self._host_ids = self._processes.host_ids()

    def read(
        self, held: Mapping[str, Held], servers: Mapping[int, str]
    ) -> tuple[dict[str, list[dict[str, Any]]], dict[tuple[str, str], str]]:
        """The holders on each GPU, and reasons by GPU and path below it ("holders/0/memory").

        Args:
            held: by GPU, process ids of the host with their bytes.
            servers: process id of each Triton server to the server's name.
        """
        looked: dict[int, Process | None] = {}
        for pid in {pid for rows in held.values() for pid, _ in rows[:MAX_HOLDERS]}:
            process = self._processes.look(pid)
            if process is not None and not self._host_ids and not self._processes.uses_gpu(pid):
                process = None
            looked[pid] = process
        ids = {process.container: process.runtime for process in looked.values() if process and process.container}
        containers = self._containers.look(ids)
        named = {}
        for pid, process in looked.items():
            holder = self._name(pid, process, servers)
            if process is not None and process.container:
                container = containers[process.container]
                holder["container"] = container.name
                if container.gone:
                    holder["orphan"] = True
            named[pid] = holder
        self._named = {pid: holder for pid, holder in named.items() if "process" in holder}
        self._processes.forget()
        return self._list(held, named)

    def gone(self, held: Mapping[str, Held]) -> list[str]:
        """The GPUs in whose list stands a process that is not there: the list may only be older than its end."""
        if not self._host_ids:
            return []
        return [
            uuid
            for uuid, rows in held.items()
            if any(
                self._processes.look(pid) is None and not self._processes.hidden(pid)
                for pid, _ in rows[:MAX_HOLDERS]
            )
        ]

    def _name(self, pid: int, process: Process | None, servers: Mapping[int, str]) -> dict[str, Any]:
        if process is None:
            if not self._host_ids or self._processes.hidden(pid):
                return {"pid": pid}
            before = self._named.get(pid, {"pid": pid, "process": GONE})
            return {**before, "orphan": True}
        holder: dict[str, Any] = {"pid": pid, "process": process.name}
        if process.unit:
            holder["unit"] = process.unit
        # A stub that outlived its server was given to process 1.
        if process.zombie or process.cut_off or (process.stub and process.parent <= 1):
            holder["orphan"] = True
        # A model's worker processes stand below its stub, the stub below its server.
        model, server, at = process.model, servers.get(pid), process
        for _ in range(ANCESTORS):
            if server is not None or at.parent <= 1:
                break
            server = servers.get(at.parent)
            parent = self._processes.look(at.parent)
            if parent is None:
                break
            at = parent
            model = model or at.model
        if server is not None:
            holder["server"] = server
        if model is not None:
            holder["model"] = model
        return holder

    def _list(
        self, held: Mapping[str, Held], named: Mapping[int, dict[str, Any]]
    ) -> tuple[dict[str, list[dict[str, Any]]], dict[tuple[str, str], str]]:
        holders: dict[str, list[dict[str, Any]]] = {}
        reasons: dict[tuple[str, str], str] = {}
        for uuid, rows in held.items():
            holders[uuid] = []
            for place, (pid, memory) in enumerate(rows[:MAX_HOLDERS]):
                holder = dict(named[pid])
                if memory is None:
                    reasons[uuid, f"holders/{place}/memory"] = UNSAID
                else:
                    holder["memory"] = memory
                if "process" not in holder:
                    reasons[uuid, f"holders/{place}/process"] = HIDDEN if self._host_ids else NOT_OURS
                holders[uuid].append(holder)
            if len(rows) > MAX_HOLDERS:
                reasons[uuid, f"holders/{MAX_HOLDERS}"] = f"{len(rows) - MAX_HOLDERS} more processes are left out"
        return holders, reasons
