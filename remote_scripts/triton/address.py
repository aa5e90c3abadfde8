"""Where a Triton server's endpoints are asked, and how they are shown."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from remote_scripts.system.listeners import interfaces, listening, own_addresses
from remote_scripts.triton.flags import Flags
from remote_scripts.triton.processes import namespace

_ANY = {"0.0.0.0", "::", "*", ""}  # noqa: S104 - addresses to recognise, none is bound


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of a server's ports.

    Attributes:
        address: numeric host and port to connect to.
        shown: "host:port" as it is reached on the droplet.
        connect: makes the socket where it must be made in another network namespace.
    """

    address: tuple[str, int]
    shown: str
    connect: Callable[[int], socket.socket] | None = None


@dataclass(frozen=True, slots=True)
class Endpoints:
    """All of a server's endpoints; None for one that is off."""

    http: Endpoint | None
    grpc: Endpoint | None
    metrics: Endpoint | None


def on_loopback(http: int | None, grpc: int | None, metrics: int | None) -> Endpoints:
    """The endpoints of a server known by its ports alone."""

    def endpoint(port: int | None) -> Endpoint | None:
        return None if port is None else Endpoint(("127.0.0.1", port), f"127.0.0.1:{port}")

    return Endpoints(endpoint(http), endpoint(grpc), endpoint(metrics))


def find_endpoints(
    proc: str, pid: int, flags: Flags, published: Mapping[int, str], *, contained: bool
) -> Endpoints:
    """The endpoints of a running server.

    Args:
        proc: the folder of /proc.
        pid: the server's, on the host.
        flags: its command line.
        published: for a container, the port inside to "host:port" on the droplet, as far as known.
        contained: it runs in a container.
    """
    elsewhere = _elsewhere(proc, pid, contained)
    ports = listening(proc, pid)
    connect = None
    own: list[str] = []
    if elsewhere:
        own = own_addresses(proc, pid)
        if os.geteuid() == 0:
            from remote_scripts.system.namespaces import socket_in

            connect = socket_in(f"{proc}/{pid}/ns/net")

    def endpoint(host: str, port: int | None) -> Endpoint | None:
        if port is None:
            return None
        inside = _inside(host, ports.get(port, set()))
        if not elsewhere:
            return Endpoint((inside, port), _join(inside if host not in _ANY else host, port))
        outside = own[0] if own else inside
        shown = published.get(port, _join(outside, port))
        return Endpoint((inside if connect else outside, port), shown, connect)

    return Endpoints(
        endpoint(flags.http_address, flags.http_port),
        endpoint(flags.grpc_address, flags.grpc_port),
        endpoint(flags.metrics_address, flags.metrics_port),
    )


def _elsewhere(proc: str, pid: int, contained: bool) -> bool:
    """Whether it listens in another network namespace than this process."""
    here, there = namespace(proc, "self", "net"), namespace(proc, pid, "net")
    if here is not None and there is not None:
        return here != there
    # Not root: another user's namespace has no inode to see, but its interfaces can be read.
    return contained and interfaces(proc, pid) != interfaces(proc, "self")


def _inside(host: str, bound: set[str]) -> str:
    """The numeric address to connect to, from the flag's value and what is bound to its port."""
    if host in _ANY:
        return "::1" if bound == {"::"} or (host == "::" and not bound) else "127.0.0.1"
    if _numeric(host):
        return host.strip("[]")
    # A name. Looking it up could block, and what it was looked up to is bound already, or nothing answers yet.
    local = sorted(address for address in bound if address not in _ANY)
    if "127.0.0.1" in local or not local:
        return "127.0.0.1"
    return local[0]


def _numeric(host: str) -> bool:
    bare = host.strip("[]")
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in bare else socket.AF_INET, bare)
    except (OSError, ValueError):
        return False
    return True


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
