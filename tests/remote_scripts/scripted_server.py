"""A server on loopback whose every byte a test decides."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Handler = Callable[[socket.socket, bytes], None]
"""Gets the connection and the request's head and body as far as they came with it."""


class ScriptedServer:
    """Serves each connection in a thread of its own until the handler returns."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self.requests: list[bytes] = []
        self.connections = 0
        self.open = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it is closed already
            self._listener.shutdown(socket.SHUT_RDWR)  # which wakes the one who accepts
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        self.open += 1
        try:
            with connection:
                while data := connection.recv(65536):
                    self.requests.append(data)
                    self._handler(connection, data)
                    if b"Connection: close" in data:
                        return
        except OSError:
            return
        finally:
            self.open -= 1


@contextmanager
def scripted(handler: Handler) -> Iterator[ScriptedServer]:
    server = ScriptedServer(handler)
    try:
        yield server
    finally:
        server.close()


def respond(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A response with its length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
