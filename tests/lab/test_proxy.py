from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.lab.proxy import Proxy


class EchoServer:
    """Sends back what it gets; counts its connections."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self.socket.getsockname()
        self.connections = 0
        self.ends: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(1 << 16):
                    connection.sendall(data)
                self.ends.append("end")
            except ConnectionResetError:
                self.ends.append("reset")


@pytest.fixture
def echo() -> Iterator[EchoServer]:
    server = EchoServer()
    yield server
    server.socket.close()


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection((proxy.address, proxy.port), timeout=10)


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            break
        data += chunk
    return data


def send_until_stopped(connection: socket.socket, limit: int) -> int:
    connection.settimeout(0.5)
    sent = 0
    while sent < limit:
        try:
            sent += connection.send(bytes(1 << 20))
        except TimeoutError:
            connection.settimeout(10)
            return sent
    raise AssertionError(f"still not stopped after {sent} bytes")


def round_trip(connection: socket.socket) -> float:
    start = time.monotonic()
    connection.sendall(b"x")
    assert receive(connection, 1) == b"x"
    return time.monotonic() - start


def wait_for(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "did not happen within 10 s"
        time.sleep(0.01)


def test_adds_its_delay_once_in_each_direction(echo: EchoServer) -> None:
    with Proxy(echo.address, delay=0.05) as proxy, connect(proxy) as connection:
        round_trip(connection)
        times = [round_trip(connection) for _ in range(15)]
    assert 0.1 <= min(times) < 0.105  # the best of them: a busy machine may hold up any other


def test_a_new_connection_costs_what_the_line_makes_it_cost(echo: EchoServer) -> None:
    with Proxy(echo.address, delay=0.05) as proxy:
        times = []
        for _ in range(7):
            start = time.monotonic()
            with connect(proxy) as connection:
                round_trip(connection)
            times.append(time.monotonic() - start)
    assert 0.2 <= min(times) < 0.22  # one round trip to connect, one for the byte


def test_the_delay_does_not_limit_the_throughput(echo: EchoServer) -> None:
    size = 8 << 20
    with Proxy(echo.address, delay=0.1) as proxy, connect(proxy) as connection:
        round_trip(connection)
        start = time.monotonic()
        sender = threading.Thread(target=connection.sendall, args=(bytes(size),))
        sender.start()
        assert len(receive(connection, size)) == size
        sender.join()
    # One chunk a round trip would take over a minute.
    assert time.monotonic() - start < 10


def test_a_receiver_that_does_not_read_stops_the_sender(echo: EchoServer) -> None:
    with Proxy(echo.address) as proxy, connect(proxy) as connection:
        sent = send_until_stopped(connection, limit=1 << 28)
        assert len(receive(connection, sent)) == sent


def test_counts_bytes_and_connections(echo: EchoServer) -> None:
    with Proxy(echo.address) as proxy:
        with connect(proxy) as connection:
            connection.sendall(bytes(1000))
            receive(connection, 1000)
            figures = proxy.traffic()
            assert (figures.connections, figures.open, figures.up, figures.down) == (1, 1, 1000, 1000)
        wait_for(lambda: proxy.traffic().open == 0)
        with connect(proxy):
            wait_for(lambda: proxy.traffic().connections == 2)


def test_a_stalled_line_keeps_its_connections_and_loses_nothing(echo: EchoServer) -> None:
    with Proxy(echo.address, delay=0.02) as proxy, connect(proxy) as connection:
        round_trip(connection)
        before = proxy.traffic()
        proxy.stall()
        connection.sendall(b"lost?")
        with connect(proxy) as second:
            second.sendall(b"anybody?")
            for waiting in (connection, second):
                waiting.settimeout(0.3)
                with pytest.raises(TimeoutError):
                    waiting.recv(1)
                waiting.settimeout(10)
            stalled = proxy.traffic()
            assert (stalled.up, stalled.down, stalled.open) == (before.up, before.down, 2)
            assert echo.connections == 1
            proxy.resume()
            assert receive(connection, 5) == b"lost?"
            assert receive(second, 8) == b"anybody?"


def test_what_was_on_the_way_when_the_line_stalled_arrives_after_it(echo: EchoServer) -> None:
    with Proxy(echo.address, delay=0.3) as proxy, connect(proxy) as connection:
        round_trip(connection)
        connection.sendall(b"on the way")
        time.sleep(0.1)
        proxy.stall()
        time.sleep(0.5)
        assert proxy.traffic().up == 1
        proxy.resume()
        assert receive(connection, 10) == b"on the way"


def test_a_cut_line_resets_what_is_open_and_refuses_what_is_new(echo: EchoServer) -> None:
    with Proxy(echo.address) as proxy, connect(proxy) as connection:
        round_trip(connection)
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
        wait_for(lambda: echo.ends == ["reset"])
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError):
                connect(proxy)
        assert proxy.traffic().open == 0
        proxy.mend()
        with connect(proxy) as again:
            round_trip(again)


def test_a_line_cut_while_somebody_connects_leaves_no_bare_connection(echo: EchoServer) -> None:
    with Proxy(echo.address, delay=0.1) as proxy, connect(proxy):
        wait_for(lambda: proxy.traffic().open == 1)
        proxy.cut()
        time.sleep(0.5)
        assert echo.connections == 0


def test_whoever_gave_up_on_a_stalled_line_leaves_no_bare_connection(echo: EchoServer) -> None:
    with Proxy(echo.address) as proxy:
        proxy.stall()
        with connect(proxy):
            wait_for(lambda: proxy.traffic().open == 1)
        proxy.resume()
        wait_for(lambda: proxy.traffic().open == 0)
        with connect(proxy) as connection:
            round_trip(connection)
        assert echo.connections == 1


def test_passes_the_end_of_one_direction_on_and_keeps_the_other_open(echo: EchoServer) -> None:
    with Proxy(echo.address, delay=0.05) as proxy, connect(proxy) as connection:
        connection.sendall(b"all")
        connection.shutdown(socket.SHUT_WR)
        assert receive(connection, 10) == b"all"
        assert connection.recv(1) == b""
        assert echo.ends == ["end"]
        wait_for(lambda: proxy.traffic().open == 0)


def test_a_target_that_refuses_breaks_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        target = closed.getsockname()

    def connect_and_wait(proxy: Proxy) -> None:
        with connect(proxy) as connection:
            connection.recv(1)

    with Proxy(target) as proxy, pytest.raises(ConnectionResetError):
        connect_and_wait(proxy)


def test_carries_many_connections_at_once(echo: EchoServer) -> None:
    with Proxy(echo.address, delay=0.02) as proxy:
        connections = [connect(proxy) for _ in range(200)]
        for index, connection in enumerate(connections):
            connection.sendall(b"%04d" % index)
        assert [receive(connection, 4) for connection in connections] == [b"%04d" % i for i in range(200)]
        assert proxy.traffic().open == 200
        for connection in connections:
            connection.close()
