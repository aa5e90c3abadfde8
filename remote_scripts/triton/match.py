"""Which server a process is: one that is known already, a further process of it, or a new one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from remote_scripts.triton.flags import Flags
from remote_scripts.triton.processes import ProcessStat, read_stat
from remote_scripts.triton.server import Server


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a tritonserver process comes from.

    Attributes:
        unit: its systemd unit, outside containers; or the one that runs its container.
        container: its container's name; ``container_id`` the full id.
    """

    flags: Flags
    unit: str | None
    container: str | None
    container_id: str | None

    @property
    def how(self) -> str:
        """As in docs/wire.md 3."""
        if self.container is not None:
            return "docker"
        return "unit" if self.unit is not None else "process"


def next_life_of(origin: Origin, servers: Iterable[Server]) -> Server | None:
    """The server that runs again with this process; the one on the same port where several may be meant."""
    resting = [server for server in servers if server.pid is None]
    port = origin.flags.http_port
    listed = [server for server in resting if server.listed and http_port(server) == port]
    if listed:
        return listed[0]
    if origin.container is not None:
        found = [server for server in resting if server.container == origin.container]
        found += [server for server in resting if server.unit is not None and server.unit == origin.unit]
    elif origin.unit is not None:
        found = [server for server in resting if server.unit == origin.unit and server.container is None]
    else:
        by_hand = [server for server in resting if server.how == "process" and server.unit is None]
        found = [server for server in by_hand if http_port(server) == port]
    same = [server for server in found if server.flags is None or http_port(server) == port]
    return next(iter(same or found), None)


def rank_of(origin: Origin, pid: int, stat: ProcessStat, servers: Iterable[Server], proc: str) -> Server | None:
    """The server of which this process is a further rank: mpirun starts one a GPU, all with one command line."""
    for server in servers:
        if server.pid is None or server.pid == pid or server.flags != origin.flags or stat.parent <= 1:
            continue
        inside = origin.container_id is not None
        same = server.container_id == origin.container_id if inside else server.unit == origin.unit
        other = read_stat(proc, server.pid)
        if same and other is not None and other.parent == stat.parent:
            return server
    return None


def names(origin: Origin, taken: Iterable[str]) -> Iterator[str]:
    """Names for a new server that are not taken, the best first."""
    port = origin.flags.http_port
    base = origin.unit.removesuffix(".service") if origin.unit is not None else origin.container
    if base is None:
        base = f"triton-{port or origin.flags.grpc_port or 0}"
    used = set(taken)
    candidates = [base, f"{base}-{port}"] if port is not None and not base.endswith(f"-{port}") else [base]
    for name in candidates:
        if name not in used:
            yield name
    number = 2
    while True:
        if f"{base}-{number}" not in used:
            yield f"{base}-{number}"
        number += 1


def http_port(server: Server) -> int | None:
    """The port of its HTTP endpoint, as far as known."""
    if server.flags is not None:
        return server.flags.http_port
    if server.endpoints is not None and server.endpoints.http is not None:
        return server.endpoints.http.address[1]
    return None
