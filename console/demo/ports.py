"""The ports of loopback on which the practice droplet's Triton listens."""

from __future__ import annotations

import socket
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ports:
    """Of HTTP and of the metrics."""

    http: int
    metrics: int


def reserve() -> tuple[Ports, list[socket.socket]]:
    """Two ports, held by sockets that do not listen: a connection is refused, and nobody takes them."""
    held = []
    for _ in range(2):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
        held.append(one)
    http, metrics = (int(one.getsockname()[1]) for one in held)
    return Ports(http, metrics), held
