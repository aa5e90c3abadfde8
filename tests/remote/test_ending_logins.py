"""A login that hangs is ended from outside: with the session, at once, and nothing of it stays."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.remote.errors import RemoteError
from console.remote.login.login import LoginContext, login
from console.remote.prompts import NoPrompter
from console.remote.target import Target
from tests.contract.living import long_sleep, wait_for

HANGS = 60.0
SOON = 5.0


@pytest.fixture
def context(tmp_path: Path) -> LoginContext:
    return LoginContext(tmp_path / "known_hosts")


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def deaf() -> Iterator[tuple[str, int]]:
    """Its queue is full, so whoever connects is not answered at all, as by a droplet that is off."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        yield server.getsockname()
        for filler in fillers:
            filler.close()


def begin(target: Target, context: LoginContext) -> tuple[threading.Thread, list[RemoteError]]:
    errors: list[RemoteError] = []

    def enter() -> None:
        try:
            login(target, prompter=NoPrompter(), deadline=HANGS, context=context)
        except RemoteError as error:
            errors.append(error)

    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    return thread, errors


def at(address: tuple[str, int], name: str = "web1") -> Target:
    return Target(name, host=address[0], port=address[1], user="root", connect_timeout=HANGS)


def ends(context: LoginContext, thread: threading.Thread, errors: list[RemoteError]) -> None:
    time.sleep(0.5)
    assert thread.is_alive()
    context.close()
    thread.join(SOON)
    assert not thread.is_alive()
    assert len(errors) == 1


def test_while_the_server_says_nothing(context: LoginContext, silent: socket.socket) -> None:
    thread, errors = begin(at(silent.getsockname()), context)
    line, _ = silent.accept()
    ends(context, thread, errors)
    line.settimeout(SOON)
    with line:
        while line.recv(4096):
            pass  # our banner, and then the end


def test_while_nobody_answers(context: LoginContext, deaf: tuple[str, int]) -> None:
    ends(context, *begin(at(deaf), context))


def test_while_a_name_is_looked_up(context: LoginContext, monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [] if never.wait(HANGS) else None)
    ends(context, *begin(at(("web1.example", 22)), context))
    never.set()


def test_while_a_jump_host_says_nothing(context: LoginContext, silent: socket.socket) -> None:
    hop = at(silent.getsockname(), name="bastion")
    ends(context, *begin(Target("web1", host="10.0.0.1", user="root", jumps=(hop,)), context))


def test_while_a_proxy_command_hangs(context: LoginContext) -> None:
    seconds = long_sleep()
    target = Target("web1", host="10.0.0.1", user="root", proxy_command=f"sleep {seconds}", connect_timeout=HANGS)
    thread, errors = begin(target, context)
    wait_for(seconds, 1)
    ends(context, thread, errors)
    wait_for(seconds, 0)


def test_nothing_is_begun_afterwards(context: LoginContext, silent: socket.socket) -> None:
    context.close()
    thread, errors = begin(at(silent.getsockname()), context)
    thread.join(SOON)
    assert not thread.is_alive()
    assert errors
