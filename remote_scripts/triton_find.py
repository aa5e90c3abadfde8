"""Triton servers on this droplet: found wherever they run, known again after a restart, remembered when down."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from remote_scripts.call import Call
from remote_scripts.cgroups import container_of
from remote_scripts.containers import Containers
from remote_scripts.docker_store import DockerStore
from remote_scripts.files import cut, read_bytes
from remote_scripts.triton_address import find_endpoints, on_loopback
from remote_scripts.triton_flags import Flags, is_triton, read_flags
from remote_scripts.triton_poll import Poll
from remote_scripts.triton_processes import ProcessStat, ProcessTable, namespace, read_arguments, read_stat
from remote_scripts.triton_server import Server
from remote_scripts.unit_files import UnitFiles
from remote_scripts.units import read_cgroup, unit_of

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
            self._replace(server)
        if ended or now - self._looked >= _NEW_EVERY:
            self._looked = now
            self._adopt_all(self._table.look())
        if slow or tick == 1:
            self._add_units()
            self._add_containers()
        self._follow_containers()
        self._refresh_endpoints()
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

    def _replace(self, ended: Server) -> None:
        """A server that was started by hand before its predecessor had ended takes over its name."""
        if ended.how != "process":
            return
        for name, server in self.servers.items():
            if server is not ended and server.how == "process" and _http_port(server) == _http_port(ended):
                del self.servers[name]
                server.name = ended.name
                self.servers[ended.name] = server
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
        flags = read_flags(arguments)
        cgroup = read_cgroup(self._proc, pid)
        inside = container_of(cgroup)
        unit = None if inside or self._foreign(pid) else unit_of(cgroup)
        server = self._worker_of(pid, stat, flags, unit, inside)
        if server is not None:
            server.workers.add(pid)
            return
        server = self._known_again(flags, unit, inside)
        if server is None:
            server = self._add(flags, unit, inside)
            if server is None:
                return
        if server.listed:
            server.how = "docker" if inside else "unit" if unit else "process"
            server.unit, server.container = unit, self._container_name(inside) if inside else None
            server.listed = False
        server.pid, server.start, server.flags = pid, stat.start, flags
        server.started = self._started(stat)
        server.ended = None
        server.doubt = True
        server.poll = Poll()
        if inside is not None:
            server.container_id = inside[1]
            server.docker = self._store.get(inside[1])
        self._locate(server)

    def _foreign(self, pid: int) -> bool:
        """Whether another systemd than this machine's started it: that of a container with an init of its own."""
        here, there = namespace(self._proc, "self", "pid"), namespace(self._proc, pid, "pid")
        return here is not None and there is not None and here != there

    def _worker_of(
        self, pid: int, stat: ProcessStat, flags: Flags, unit: str | None, inside: tuple[str, str] | None
    ) -> Server | None:
        """The server of which this is a further rank: mpirun starts one process a GPU, all alike."""
        for server in self.servers.values():
            if server.pid is None or server.flags != flags or pid == server.pid:
                continue
            other = read_stat(self._proc, server.pid)
            same = server.unit == unit if inside is None else server.container_id == inside[1]
            if same and other is not None and other.parent == stat.parent and stat.parent > 1:
                return server
        return None

    def _known_again(self, flags: Flags, unit: str | None, inside: tuple[str, str] | None) -> Server | None:
        """The server that this process is the next life of."""
        candidates = [server for server in self.servers.values() if server.pid is None]
        for server in candidates:
            if server.listed and _http_port(server) == flags.http_port:
                return server
        if inside is not None:
            name = self._container_name(inside)
            found = [server for server in candidates if server.container == name]
            found += [server for server in candidates if name in self._containers_of(server)]
        elif unit is not None:
            found = [server for server in candidates if server.unit == unit and server.container is None]
        else:
            found = [server for server in candidates if server.how == "process" and server.unit is None]
            found = [server for server in found if _http_port(server) == flags.http_port]
        same = [server for server in found if server.flags is None or _http_port(server) == flags.http_port]
        return next(iter(same or found), None)

    def _add(self, flags: Flags, unit: str | None, inside: tuple[str, str] | None) -> Server | None:
        container = self._container_name(inside) if inside is not None else None
        for runner, name in self._unit_containers.items():
            if container is not None and name == container:
                unit = runner
        if unit is not None:
            name = unit.removesuffix(".service")
        else:
            name = container or f"triton-{flags.http_port or flags.grpc_port or 0}"
        how = "docker" if container is not None else "unit" if unit is not None else "process"
        return self._insert(Server(name, how, unit=unit, container=container), flags)

    def _insert(self, server: Server, flags: Flags | None) -> Server | None:
        server.name = cut(server.name)
        if len(self.servers) >= SERVERS:
            if len(self._left_out) < 10 * SERVERS:
                self._left_out.add(server.name)
            return None
        for name in _names(server.name, flags):
            if name not in self.servers:
                server.name = name
                self.servers[name] = server
                return server
        return None

    def _container_name(self, inside: tuple[str, str]) -> str:
        runtime, identity = inside
        found = self._store.get(identity)
        return found.name if found is not None else self._containers.look({identity: runtime})[identity].name

    def _containers_of(self, server: Server) -> set[str]:
        name = self._unit_containers.get(server.unit or "")
        return {name} if name else set()

    def _locate(self, server: Server) -> None:
        if server.pid is None or server.flags is None:
            return
        published = server.docker.published if server.docker is not None else {}
        contained = server.container_id is not None
        server.endpoints = find_endpoints(self._proc, server.pid, server.flags, published, contained=contained)

    def _refresh_endpoints(self) -> None:
        """Where a server does not answer, look again where it listens: an address may be a name."""
        for server in self.servers.values():
            health = server.poll.reading.health
            if server.pid is not None and health is not None and health.failure in ("refused", "unreachable"):
                self._locate(server)

    def _add_units(self) -> None:
        """Units that start Triton and have no server yet: they do not run."""
        units = {server.unit for server in self.servers.values()}
        for unit, container in self._unit_containers.items():
            if unit not in units:
                how = "docker" if container else "unit"
                self._insert(Server(unit.removesuffix(".service"), how, unit=unit), None)

    def _add_containers(self) -> None:
        """Containers that start Triton and do not run, as far as Docker will start them again."""
        known = {server.container for server in self.servers.values()} | set(self._unit_containers.values())
        for container in self._store.all():
            wanted = container.triton and (container.restarting or container.policy != "no" or container.running)
            if wanted and container.name not in known:
                server = self._insert(Server(container.name, "docker", container=container.name), None)
                if server is not None:
                    server.container_id = container.id

    def _follow_containers(self) -> None:
        for server in self.servers.values():
            if server.container_id is not None:
                server.docker = self._store.get(server.container_id)

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
        server = Server(name if isinstance(name, str) and name else f"triton-{ports['http']}", "process")
        server.flags = None
        server.listed = True
        server.endpoints = on_loopback(**ports)
        self._insert(server, None)

    def _forget(self, now: float) -> None:
        for name, server in list(self.servers.items()):
            if server.pid is not None or server.listed:
                continue
            gone = server.ended is not None and now - server.ended > REMEMBERED
            if server.unit is not None:
                # Its files may be where they are not looked for: what systemd does not know any more is gone.
                state = server.unit_state
                stays = server.unit in self._unit_containers or state is None or state.load != "not-found"
            else:
                stays = server.docker is not None
            if gone and not stays:
                del self.servers[name]


def _names(name: str, flags: Flags | None) -> Iterator[str]:
    yield name
    if flags is not None and flags.http_port is not None and not name.endswith(f"-{flags.http_port}"):
        yield f"{name}-{flags.http_port}"
    for number in range(2, SERVERS + 2):
        yield f"{name}-{number}"


def _http_port(server: Server) -> int | None:
    if server.flags is not None:
        return server.flags.http_port
    if server.endpoints is not None and server.endpoints.http is not None:
        return server.endpoints.http.address[1]
    return None


def _port(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 65536 else None
