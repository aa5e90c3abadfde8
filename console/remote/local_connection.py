"""A TCP connection of this machine's own, as ``Transport.dial`` gives one."""

from __future__ import annotations

import contextlib
import socket

from console.remote.errors import FailureKind, RemoteError
from console.remote.refusals import printable


class LocalConnection:
    """Implements ``console.remote.transport.Dialled`` over a socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def send(self, data: bytes, /) -> int:
        """See ``Dialled.send``."""
        return self._socket.send(data)

    def recv(self, size: int, /) -> bytes:
        """See ``Dialled.recv``."""
        return self._socket.recv(size)

    def shutdown_write(self) -> None:
        """See ``Dialled.shutdown_write``."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """See ``Dialled.close``: whoever waits in ``recv`` is woken."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def local_connection(name: str, host: str, port: int, timeout: float) -> LocalConnection:
    """Connect to ``host``; RemoteError REFUSED or TIMED_OUT where that fails."""
    where = f"{name}: port {port} of {printable(host, 80)}"
    try:
        connected = socket.create_connection((host, port), timeout=timeout)
    except TimeoutError as error:
        raise RemoteError(FailureKind.TIMED_OUT, f"{where} did not answer within {timeout:g} s") from error
    except OSError as error:
        raise RemoteError(FailureKind.REFUSED, f"{where} cannot be reached: {error.strerror or error}") from error
    connected.settimeout(None)
    return LocalConnection(connected)
