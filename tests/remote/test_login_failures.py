"""Every way in which reaching a droplet fails, told apart in words."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.login.login import LoginContext, login
from console.remote.prompts import NoPrompter
from console.remote.target import Target
from tests.remote.conftest import Enter, StartSshd
from tests.remote.sshd import free_port

HOST = "127.0.0.1"


def fails(target: Target, context: LoginContext, deadline: float = 10.0) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        login(target, prompter=NoPrompter(), deadline=deadline, context=context)
    assert "web1" in str(caught.value)
    return caught.value


@contextmanager
def server(*sent: bytes, then_close: bool = True) -> Iterator[int]:
    """A listener that says something to each who connects, and hangs up or stays."""
    listener = socket.create_server((HOST, 0))
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            for data in sent:
                connection.sendall(data)
            if then_close:
                with suppress(ConnectionError):
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        continue
                connection.close()
            else:
                held.append(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
        for connection in held:
            connection.close()


def test_a_name_that_nobody_knows(context: LoginContext) -> None:
    error = fails(Target("web1", host="no-such-host.invalid", user="root"), context)
    assert error.kind is FailureKind.NAME_NOT_RESOLVED
    assert "no-such-host.invalid" in str(error)


def test_nobody_listens(context: LoginContext) -> None:
    error = fails(Target("web1", host=HOST, port=free_port(), user="root"), context)
    assert error.kind is FailureKind.REFUSED
    assert "UFW" in (error.hint or "")


def test_an_address_without_an_answer_times_out_when_it_should(context: LoginContext) -> None:
    with socket.socket() as full:
        # A full backlog: the kernel drops further connection attempts without a word.
        full.bind((HOST, 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        began = time.monotonic()
        error = fails(
            Target("web1", host=HOST, port=full.getsockname()[1], user="root", connect_timeout=1.0), context
        )
        assert error.kind is FailureKind.TIMED_OUT
        assert "does not answer" in str(error)
        assert time.monotonic() - began < 8
        for filler in fillers:
            filler.close()


def test_an_address_of_the_wrong_family_has_no_way(context: LoginContext) -> None:
    error = fails(Target("web1", host=HOST, user="root", address_family="inet6"), context)
    assert error.kind is FailureKind.NAME_NOT_RESOLVED


def test_a_bind_address_that_this_machine_lacks(context: LoginContext) -> None:
    error = fails(Target("web1", host=HOST, user="root", bind_address="192.0.2.1"), context)
    assert error.kind is FailureKind.SETTINGS
    assert "192.0.2.1" in str(error)


@pytest.mark.parametrize(
    ("said", "kind", "words", "retry_after"),
    [
        (b"", FailureKind.LIMITED, "closes it without a word", None),
        (b"Exceeded MaxStartups\r\n", FailureKind.LIMITED, "MaxStartups", 1.0),
        (b"Not allowed at this time\r\n", FailureKind.LIMITED, "PerSourcePenalties", 15.0),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", FailureKind.PROTOCOL, "HTTP/1.1 400", None),
        (b"SSH-1.5-old\r\n", FailureKind.PROTOCOL, "SSH-1.5-old", None),
        (b"\x1b]0;title\x07\r\n", FailureKind.PROTOCOL, r"\x1b]0;title\x07", None),
        (b"x" * 100_000, FailureKind.PROTOCOL, "no SSH server", None),
        (b"line\r\n" * 1000, FailureKind.PROTOCOL, "no SSH server", None),
    ],
)
def test_what_is_said_in_place_of_a_banner(
    context: LoginContext, said: bytes, kind: FailureKind, words: str, retry_after: float | None
) -> None:
    with server(said) as port:
        error = fails(Target("web1", host=HOST, port=port, user="root"), context)
    assert error.kind is kind
    assert words in str(error)
    assert error.retry_after == retry_after
    assert not error.needs_a_person
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("sent", "words"),
    [((), "then says nothing"), ((b"SSH-2.0-slow\r\n",), "did not finish the key exchange")],
)
def test_silence_is_a_time_out_and_tells_at_which_point(
    context: LoginContext, sent: tuple[bytes, ...], words: str
) -> None:
    with server(*sent, then_close=False) as port:
        began = time.monotonic()
        error = fails(Target("web1", host=HOST, port=port, user="root", connect_timeout=1.0), context)
    assert error.kind is FailureKind.TIMED_OUT
    assert words in str(error)
    assert time.monotonic() - began < 8


def test_an_end_in_the_key_exchange_is_a_lost_line(context: LoginContext) -> None:
    with server(b"SSH-2.0-brief\r\n") as port:
        error = fails(Target("web1", host=HOST, port=port, user="root"), context)
    assert error.kind is FailureKind.LOST


def test_garbage_in_the_key_exchange_is_a_protocol_error(context: LoginContext) -> None:
    with server(b"SSH-2.0-odd\r\n", b"\x00\x00\x00\x0c\x04" + b"\xff" * 200) as port:
        error = fails(Target("web1", host=HOST, port=port, user="root"), context)
    assert error.kind in (FailureKind.PROTOCOL, FailureKind.LOST)


def test_no_fifth_login_to_one_droplet_in_half_a_minute(context: LoginContext) -> None:
    target = Target("web1", host=HOST, port=free_port(), user="root")
    kinds = [fails(target, context).kind for _ in range(5)]
    assert kinds == [FailureKind.REFUSED] * 4 + [FailureKind.LIMITED]
    error = fails(target, context)
    assert error.retry_after is not None
    assert 20 < error.retry_after <= 30


def test_threads_of_failed_logins_end(context: LoginContext) -> None:
    with server(b"nonsense\r\n") as port:
        for _ in range(3):
            fails(Target("web1", host=HOST, port=port, user="root"), context)
    deadline = time.monotonic() + 10
    while _connections() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _connections()


def _connections() -> list[str]:
    return [t.name for t in threading.enumerate() if type(t).__name__ == "ClientTransport"]


@pytest.mark.lab
def test_a_server_with_old_algorithms_alone(start_sshd: StartSshd, context: LoginContext) -> None:
    sshd = start_sshd("KexAlgorithms diffie-hellman-group14-sha1")
    error = fails(sshd.target(), context)
    assert error.kind is FailureKind.PROTOCOL
    assert "SHA-1" in (error.hint or "")
    assert "OpenSSH" in str(error)


@pytest.mark.lab
def test_max_startups_is_named(start_sshd: StartSshd, context: LoginContext) -> None:
    sshd = start_sshd("MaxStartups 1:100:1", "LoginGraceTime 30")
    target = sshd.target()
    with socket.create_connection((HOST, sshd.port)) as scanner:
        scanner.recv(100)
        error = fails(target, context)
    assert error.kind is FailureKind.LIMITED


@pytest.mark.lab
def test_a_login_does_not_wait_for_the_slowest_of_the_others(start_sshd: StartSshd, context: LoginContext) -> None:
    sshd = start_sshd()
    with server(then_close=False) as port:
        slow = Target("web1", host=HOST, port=port, user="root", connect_timeout=60.0)
        others = [threading.Thread(target=fails, args=(slow, context, 60.0), daemon=True) for _ in range(4)]
        for other in others:
            other.start()
        login(sshd.target(), prompter=NoPrompter(), deadline=20, context=context).close()
        assert all(other.is_alive() for other in others)
    for other in others:
        other.join(20)
        assert not other.is_alive()


@pytest.mark.lab
def test_every_address_of_a_name_is_tried(
    start_sshd: StartSshd, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd = start_sshd()
    addresses = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", sshd.port, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.2", sshd.port)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", sshd.port)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: addresses)
    target = sshd.target(host="web1.example", host_key_alias=f"[127.0.0.1]:{sshd.port}")
    assert enter(target).transport.is_authenticated()
