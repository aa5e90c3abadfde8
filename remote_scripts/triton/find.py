"""Triton servers on this droplet: found wherever they run, known again after a restart, remembered when down."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from remote_scripts.call import Call
from remote_scripts.files import cut, read_bytes
from remote_scripts.system.cgroups import container_of
from remote_scripts.system.containers import Containers
from remote_scripts.system.docker_store import DockerStore
from remote_scripts.system.unit_files import UnitFiles
from remote_scripts.system.units import read_cgroup, unit_of
from remote_scripts.triton.address import find_endpoints, on_loopback
from remote_scripts.triton.flags import is_triton, read_flags
from remote_scripts.triton.match import Origin, http_port, names, next_life_of, rank_of
from remote_scripts.triton.poll import Poll
from remote_scripts.triton.processes import ProcessStat, ProcessTable, namespace, read_arguments, read_stat
from remote_scripts.triton.server import Server

SERVERS = 32
"""On one droplet (docs/wire.md 3)."""
REMEMBERED = 600.0
"""Seconds for which a server is shown that ended and that nothing starts again."""
_NEW_EVERY = 0.9
"""Seconds between two looks for new processes at least."""


class Finder:
    """The servers, from tick to tick.

    Attributes:
        servers: by name.
    """

    def __init__(self, call: Call, listed: Sequence[Mapping[str, Any]]) -> None:
        self.servers: dict[str, Server] = {}
        self._left_out: set[str] = set()
        self._looked = -_NEW_EVERY
        self._booted: tuple[float, int] | None = None
        self._proc = str(call.resolve("/proc"))
        self._table = ProcessTable(self._proc)
        self._unit_files = UnitFiles(call)
        self._store = DockerStore(call)
        self._containers = Containers(call)
        self._unit_containers: dict[str, str] = {}
        for entry in listed:
            self._add_listed(entry)

    @property
    def left_out(self) -> int:
        """Servers beyond the limit."""
        return len(self._left_out)

    def look(self, *, tick: int, slow: bool, now: float) -> None:
        """Bring ``servers`` up to date.

        Args:
            tick: the tick's number.
            slow: look also for units and containers that do not run.
            now: by the monotonic clock.
        """
        if slow or tick == 1:
            # On the first tick this machine's own units alone: there are hundreds of others.
            self._unit_containers = self._unit_files.look(everywhere=tick > 0)
        ended = [server for server in self.servers.values() if server.pid is not None and not self._lives(server)]
        for server in ended:
            self._end(server, now)
        if ended or now - self._looked >= _NEW_EVERY:
            self._looked = now
            self._adopt_all(self._table.look())
        if slow or tick == 1:
            self._add_units()
            self._add_containers()
        for server in self.servers.values():
            self._refresh(server)
        self._forget(now)

    def pids(self) -> dict[int, str]:
        """The servers' processes to their servers' names."""
        found = {pid: server.name for server in self.servers.values() for pid in server.workers}
        found.update({server.pid: server.name for server in self.servers.values() if server.pid is not None})
        return found

    def _lives(self, server: Server) -> bool:
        stat = read_stat(self._proc, server.pid) if server.pid is not None else None
        server.process_state = stat.state if stat is not None else ""
        return stat is not None and stat.alive and stat.start == server.start

    def _end(self, server: Server, now: float) -> None:
        server.failed_starts = 0 if server.poll.was_ready else server.failed_starts + 1
        server.pid = None
        server.ended = now
        server.doubt = True
        server.unit_state = None
        server.workers = set()
        server.poll = Poll()
        # One that was started by hand before its predecessor had ended takes over its name.
        for name, other in self.servers.items():
            by_hand = server.how == "process" and other.how == "process"
            if other is not server and by_hand and http_port(other) == http_port(server):
                del self.servers[name]
                other.name = server.name
                self.servers[server.name] = other
                return

    def _adopt_all(self, pids: set[int]) -> None:
        known = set(self.pids())
        stats: dict[int, ProcessStat] = {}
        for pid in pids - known:
            stat = read_stat(self._proc, pid)
            if stat is not None and stat.alive:
                stats[pid] = stat
        for pid in sorted(stats):
            # A server that forks is itself for a moment, until the child becomes a stub.
            if stats[pid].parent not in known and stats[pid].parent not in stats:
                self._adopt(pid, stats[pid])

    def _adopt(self, pid: int, stat: ProcessStat) -> None:
        arguments = read_arguments(self._proc, pid)
        if not is_triton(arguments):
            return
        origin = self._origin(pid, arguments)
        first = rank_of(origin, pid, stat, self.servers.values(), self._proc)
        if first is not None:
            first.workers.add(pid)
            return
        server = next_life_of(origin, self.servers.values())
        if server is None:
            server = self._insert(Server(next(names(origin, self.servers)), origin.how))
        elif server.listed:
            server.how, server.listed = origin.how, False
        if server is None:
            return
        server.unit, server.container, server.container_id = origin.unit, origin.container, origin.container_id
        server.pid, server.start, server.flags = pid, stat.start, origin.flags
        server.started = self._started(stat)
        server.ended = None
        server.doubt = True
        server.poll = Poll()
        if server.container_id is not None:
            server.docker = self._store.get(server.container_id)
        self._locate(server)

    def _origin(self, pid: int, arguments: Sequence[str]) -> Origin:
        cgroup = read_cgroup(self._proc, pid)
        inside = container_of(cgroup)
        if inside is None:
            return Origin(read_flags(arguments), None if self._foreign(pid) else unit_of(cgroup), None, None)
        runtime, identity = inside
        stored = self._store.get(identity)
        name = stored.name if stored is not None else self._containers.look({identity: runtime})[identity].name
        runner = next((unit for unit, runs in self._unit_containers.items() if runs == name), None)
        return Origin(read_flags(arguments), runner, name, identity)

    def _foreign(self, pid: int) -> bool:
        """Whether another systemd than this machine's started it: that of a container with an init of its own."""
        here, there = namespace(self._proc, "self", "pid"), namespace(self._proc, pid, "pid")
        return here is not None and there is not None and here != there

    def _insert(self, server: Server) -> Server | None:
        server.name = cut(server.name)
        if len(self.servers) >= SERVERS or server.name in self.servers:
            if len(self._left_out) < 10 * SERVERS:
                self._left_out.add(server.name)
            return None
        self.servers[server.name] = server
        return server

    def _locate(self, server: Server) -> None:
        if server.pid is not None and server.flags is not None:
            published = server.docker.published if server.docker is not None else {}
            contained = server.container_id is not None
            server.endpoints = find_endpoints(self._proc, server.pid, server.flags, published, contained=contained)

    def _refresh(self, server: Server) -> None:
        if server.container_id is not None:
            server.docker = self._store.get(server.container_id)
        health = server.poll.reading.health
        if health is not None and health.failure in ("refused", "unreachable"):
            self._locate(server)  # its address may be a name, and what that is shows once it listens

    def _add_units(self) -> None:
        """Units that start Triton and have no server yet: they do not run."""
        units = {server.unit for server in self.servers.values()}
        for unit, container in self._unit_containers.items():
            name = unit.removesuffix(".service")
            if unit not in units and name not in self.servers:
                self._insert(Server(name, "docker" if container else "unit", unit=unit))

    def _add_containers(self) -> None:
        """Containers that start Triton and do not run, as far as Docker will start them again."""
        known = {server.container for server in self.servers.values()} | set(self._unit_containers.values())
        for container in self._store.all():
            wanted = container.triton and (container.restarting or container.policy != "no" or container.running)
            if wanted and container.name not in known and container.name not in self.servers:
                self._insert(Server(container.name, "docker", container=container.name, container_id=container.id))

    def _started(self, stat: ProcessStat) -> float | None:
        """Unix seconds. Read once, for btime wavers by a second from read to read."""
        if self._booted is None:
            try:
                text = read_bytes(f"{self._proc}/stat", 1 << 20)
                at = text.index(b"\nbtime ") + 7
                self._booted = float(text[at : text.index(b"\n", at)]), os.sysconf("SC_CLK_TCK")
            except (OSError, ValueError):
                return None
        return round(self._booted[0] + stat.start / self._booted[1], 2)

    def _add_listed(self, entry: Mapping[str, Any]) -> None:
        ports = {key: _port(entry.get(key)) for key in ("http", "grpc", "metrics")}
        name = entry.get("name")
        if ports["http"] is None:
            return
        server = Server(
            name if isinstance(name, str) and name else f"triton-{ports['http']}", "process", listed=True
        )
        server.endpoints = on_loopback(**ports)
        self._insert(server)

    def _forget(self, now: float) -> None:
        for name, server in list(self.servers.items()):
            if server.pid is not None or server.listed or server.ended is None:
                continue
            if server.unit is not None:
                # Its file may be where none is looked for: what systemd does not know any more is gone.
                state = server.unit_state
                stays = server.unit in self._unit_containers or state is None or state.load != "not-found"
            else:
                stays = server.docker is not None
            if not stays and now - server.ended > REMEMBERED:
                del self.servers[name]


def _port(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 65536 else None
