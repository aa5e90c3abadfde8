"""Ports of a droplet brought to this machine, over the connection that already watches it.

Each connection made here is a channel there. A line that is lost and comes back needs nothing done: the next
connection takes the new one.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping

from console.domain.telemetry.sample import ServerSample
from console.remote.errors import RemoteError
from console.remote.transport import Dialled

LOOPBACK = "127.0.0.1"
AT_ONCE = 32
"""Connections that are carried at the same time; more wait to be accepted."""
DIAL_S = 10.0
_CHUNK = 1 << 15

Dial = Callable[[str, int, float], Dialled]
"""Connects to a host and port as the droplet sees them, within so many seconds."""


class Forward:
    """One port. It listens on this machine's loopback from the start, until it is closed.

    Args:
        dial: Makes the connections on the other side.
        host: Where to, as the droplet sees it.
        port: Likewise.

    Attributes:
        local_port: Where it listens: the same number where that is free here.
        failure: Why the last connection came to nothing; None where it did not.
    """

    def __init__(self, dial: Dial, host: str, port: int) -> None:
        self._dial = dial
        self._host, self._port = host, port
        self._listener = _listen(port)
        self.local_port: int = self._listener.getsockname()[1]
        self.failure: str | None = None
        self._free = threading.Semaphore(AT_ONCE)
        self._open: set[Callable[[], None]] = set()
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._accept, name=f"forward {port}", daemon=True).start()

    def close(self) -> None:
        """Stop listening, and end what is being carried."""
        with self._lock:
            self._closed = True
            ends = list(self._open)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in ends:
            end()

    def _accept(self) -> None:
        while not self._closed:
            self._free.acquire()
            try:
                near, _ = self._listener.accept()
            except OSError:  # closed, or out of file descriptors: with those it ends, and says so
                if not self._closed:
                    self.failure = "this machine accepts no more connections"
                return
            threading.Thread(target=self._carry, args=(near,), name="forwarded", daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        try:
            far = self._dial(self._host, self._port, DIAL_S)
        except RemoteError as error:
            self.failure = str(error)
            near.close()
            self._free.release()
            return
        self.failure = None

        def end() -> None:
            with contextlib.suppress(OSError):
                near.shutdown(socket.SHUT_RDWR)
            far.close()

        with self._lock:
            self._open.add(end)
            closed = self._closed
        if closed:
            end()
        back = threading.Thread(target=_copy, args=(far.recv, near.sendall, _half_closer(near)), daemon=True)
        back.start()
        _copy(near.recv, lambda data: _send_all(far, data), far.shutdown_write)
        back.join()
        far.close()
        near.close()
        with self._lock:
            self._open.discard(end)
        self._free.release()


class Forwards:
    """The ports of one Triton server.

    Attributes:
        ports: By protocol ("http", "grpc", "metrics"): each forward.
    """

    def __init__(self, dial: Dial, server: ServerSample) -> None:
        self.ports: dict[str, Forward] = {}
        try:
            for protocol in ("http", "grpc", "metrics"):
                address = getattr(server, protocol)
                if address is not None:
                    host, _, port = address.rpartition(":")
                    self.ports[protocol] = Forward(dial, host.strip("[]") or LOOPBACK, int(port))
        except BaseException:
            self.close()
            raise

    @property
    def local(self) -> Mapping[str, int]:
        """The ports here, by protocol."""
        return {protocol: forward.local_port for protocol, forward in self.ports.items()}

    @property
    def failure(self) -> str | None:
        """Why a connection came to nothing just now."""
        return next((forward.failure for forward in self.ports.values() if forward.failure), None)

    def close(self) -> None:
        """End all of them."""
        for forward in self.ports.values():
            forward.close()


def _listen(port: int) -> socket.socket:
    """A listener on loopback, at that port or, where it is taken, at any."""
    for wanted in (port, 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, wanted))
            listener.listen(AT_ONCE)
        except OSError:
            listener.close()
            if not wanted:
                raise
            continue
        return listener
    raise OSError("no port is free")


def _half_closer(near: socket.socket) -> Callable[[], None]:
    return lambda: near.shutdown(socket.SHUT_WR)


def _send_all(far: Dialled, data: bytes) -> None:
    view = memoryview(data)
    while view:
        sent = far.send(bytes(view))
        if not sent:
            raise BrokenPipeError("the other side takes nothing more")
        view = view[sent:]


def _copy(read: Callable[[int], bytes], write: Callable[[bytes], object], end: Callable[[], None]) -> None:
    """Carry one direction to its end; a side that breaks off ends it."""
    with contextlib.suppress(OSError, EOFError):
        while data := read(_CHUNK):
            write(data)
    with contextlib.suppress(OSError, EOFError):
        end()
