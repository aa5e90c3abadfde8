from __future__ import annotations

import socket
import time

import pytest

from remote_scripts.triton.http_reply import HEAD_LIMIT, Reply, ReplyError
from remote_scripts.triton.loopback import BODY_LIMIT, Answer, Chain, Request, drive
from tests.remote_scripts.scripted_server import Handler, respond, scripted

WITHIN = 5.0


def ask(address: tuple[str, int], within: float = WITHIN) -> Answer:
    answers: list[Answer] = []

    def chain() -> Chain:
        answers.append((yield Request(address, "/x")))

    drive([chain()], time.monotonic() + within)
    return answers[0]


def sends(*parts: bytes) -> Handler:
    def handler(connection: socket.socket, request: bytes) -> None:
        for part in parts:
            connection.sendall(part)

    return handler


def silent(connection: socket.socket, request: bytes) -> None:
    connection.recv(1)


def test_an_answer_with_a_length() -> None:
    with scripted(sends(respond(b"hello"))) as server:
        assert ask(server.address) == Answer(200, b"hello")
        assert server.requests[0].startswith(b"GET /x HTTP/1.1\r\nHost: 127.0.0.1:")
        assert b"\r\nConnection: close\r\n" in server.requests[0]


def test_an_answer_in_chunks_in_small_pieces() -> None:
    body = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nA: b\r\n\r\n"
    )
    with scripted(sends(*(body[at : at + 1] for at in range(len(body))))) as server:
        assert ask(server.address) == Answer(200, b"hello world")


def test_an_answer_until_the_connection_closes() -> None:
    with scripted(sends(b"HTTP/1.0 200 OK\r\n\r\n", b"hello")) as server:
        assert ask(server.address) == Answer(200, b"hello")


def test_an_interim_answer_is_passed_over() -> None:
    with scripted(sends(b"HTTP/1.1 100 Continue\r\n\r\n", respond(b"", "400 Bad Request"))) as server:
        assert ask(server.address) == Answer(400, b"")


def test_nobody_listens() -> None:
    with scripted(silent) as server:
        address = server.address
    assert ask(address).failure == "refused"


def test_a_server_that_accepts_and_says_nothing() -> None:
    with scripted(silent) as server:
        began = time.monotonic()
        assert ask(server.address, within=0.2).failure == "timeout"
        assert time.monotonic() - began < WITHIN


def test_a_server_that_drips() -> None:
    def drip(connection: socket.socket, request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            connection.sendall(b"x")
            time.sleep(0.01)

    with scripted(drip) as server:
        assert ask(server.address, within=0.2).failure == "timeout"


def test_one_that_hangs_does_not_keep_others_waiting() -> None:
    answered: list[float] = []

    def chain(address: tuple[str, int]) -> Chain:
        for _ in range(3):
            answer = yield Request(address, "/")
            if answer.status == 200:
                answered.append(time.monotonic())

    with scripted(silent) as hung, scripted(sends(respond(b""))) as well:
        deadline = time.monotonic() + 2.0
        drive([chain(hung.address), chain(well.address)], deadline)
        assert len(answered) == 3
        assert max(answered) < deadline


def test_after_the_deadline_nothing_more_is_begun() -> None:
    failures: list[str] = []

    def chain(address: tuple[str, int]) -> Chain:
        for _ in range(5):
            failures.append((yield Request(address, "/")).failure)

    with scripted(silent) as server:
        drive([chain(server.address)], time.monotonic() + 0.1)
        assert failures == ["timeout"] * 5
        assert server.connections == 1


def test_one_connection_serves_a_chain_and_is_closed_with_it() -> None:
    bodies: list[bytes] = []

    def chain(address: tuple[str, int]) -> Chain:
        for keep in (True, True, False):
            bodies.append((yield Request(address, "/", keep=keep)).body)

    with scripted(sends(respond(b"a"))) as server:
        drive([chain(server.address)], time.monotonic() + WITHIN)
        assert bodies == [b"a"] * 3
        assert server.connections == 1
        until = time.monotonic() + WITHIN
        while server.open and time.monotonic() < until:
            time.sleep(0.01)
        assert server.open == 0


def test_a_connection_that_is_closed_between_two_requests_is_opened_again() -> None:
    def once(connection: socket.socket, request: bytes) -> None:
        connection.sendall(respond(b"a"))
        connection.shutdown(socket.SHUT_RDWR)

    answers: list[Answer] = []

    def chain(address: tuple[str, int]) -> Chain:
        for _ in range(3):
            answers.append((yield Request(address, "/", keep=True)))

    with scripted(once) as server:
        drive([chain(server.address)], time.monotonic() + WITHIN)
        assert [answer.status for answer in answers] == [200] * 3
        assert server.connections == 3


def test_a_body_without_an_end_is_cut_off() -> None:
    def endless(connection: socket.socket, request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    with scripted(endless) as server:
        answer = ask(server.address, within=20.0)
        assert (answer.failure, answer.body) == ("broken", b"")
        assert answer.reason == f"the answer is larger than {BODY_LIMIT >> 20} MiB"


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 ok\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 5000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * (HEAD_LIMIT + 10),
        b"\0\x16\x03\x01",
        b"",
    ],
)
def test_what_is_no_answer_is_told_as_such(raw: bytes) -> None:
    with scripted(sends(raw)) as server:
        answer = ask(server.address)
        assert answer.status == 0
        assert answer.failure == "broken"
        assert answer.reason


def test_more_than_was_announced_ends_the_connection() -> None:
    reply = Reply(100)
    assert reply.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcd")
    assert (reply.body(), reply.keep) == (b"ab", False)


def test_an_early_end_is_an_error() -> None:
    reply = Reply(100)
    assert not reply.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcd")
    with pytest.raises(ReplyError):
        reply.feed(b"")


def test_an_ipv6_host_is_bracketed() -> None:
    assert b"Host: [::1]:8000\r\n" in Request(("::1", 8000), "/").encode()
