"""Connecting to a port as the droplet sees it."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.transport import Dialled, Transport

ECHO = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    near, _ = server.accept()
    with near:
        while data := near.recv(65536):
            near.sendall(data)
"""


@pytest.fixture
def echo_port(transport: Transport) -> int:
    process = transport.open(["python3", "-c", ECHO], timeout=20)
    chunk = process.read(20)
    assert chunk is not None
    return int(chunk.data)


def read_all(connection: Dialled) -> bytes:
    found = b""
    while data := connection.recv(1 << 16):
        found += data
    return found


def test_bytes_go_both_ways_and_the_end_of_one_is_not_the_end_of_the_other(
    transport: Transport, echo_port: int
) -> None:
    connection = transport.dial("127.0.0.1", echo_port, timeout=10)
    sent = bytes(range(256)) * 4000
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(read_all(connection)))
    reader.start()
    view = memoryview(sent)
    while view:
        view = view[connection.send(bytes(view[:50_000])) :]
    connection.shutdown_write()
    reader.join(20)
    assert got == [sent]
    connection.close()
    connection.close()


def test_a_port_where_nothing_listens_is_refused(transport: Transport) -> None:
    with pytest.raises(RemoteError) as caught:
        transport.dial("127.0.0.1", 9, timeout=10)
    assert caught.value.kind is FailureKind.REFUSED
    assert "port 9" in str(caught.value)


def test_closing_wakes_the_reader(transport: Transport, echo_port: int) -> None:
    connection = transport.dial("127.0.0.1", echo_port, timeout=10)
    done = threading.Event()

    def read() -> None:
        with contextlib.suppress(OSError, EOFError):
            connection.recv(1)
        done.set()

    threading.Thread(target=read, daemon=True).start()
    time.sleep(0.2)
    connection.close()
    assert done.wait(5)


def test_a_closed_transport_dials_nothing(transport: Transport) -> None:
    transport.close()
    with pytest.raises(RemoteError) as caught:
        transport.dial("127.0.0.1", 9, timeout=5)
    assert caught.value.kind is FailureKind.LOST
