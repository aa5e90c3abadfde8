"""The authentication dialogue against a server that may say anything."""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.remote.authentication.auth import authenticate
from console.remote.authentication.memory import Memory
from console.remote.authentication.userauth import Dialogue, Failure, Success, UserAuth
from console.remote.errors import FailureKind, RemoteError
from console.remote.login.deadline import Deadline
from console.remote.login.exchange import Exchange
from console.remote.prompts import Challenge, NoPrompter
from console.remote.ssh import ssh_wire
from console.remote.ssh.paramiko_api import Channel
from console.remote.target import Target


class Scripted:
    """A connection whose server says what the test says."""

    remote_version = "SSH-2.0-test"
    disconnected: tuple[int, str] | None = None
    host_key_blob = b""
    session_id = b"session"

    def __init__(self, *messages: bytes) -> None:
        self.server_extensions: dict[str, bytes] = {}
        self.sent: list[bytes] = []
        self._messages = deque(messages)

    def auth_send(self, payload: bytes) -> None:
        self.sent.append(payload)

    def auth_receive(self, timeout: float) -> bytes:
        if not self._messages:
            raise EOFError("over")
        return self._messages.popleft()

    def negotiate(self, timeout: float) -> None: ...

    def set_keepalive(self, seconds: int) -> None: ...

    def is_active(self) -> bool:
        return True

    def is_authenticated(self) -> bool:
        return False

    def open_channel(self, kind: str = "session", *, timeout: float, to: tuple[str, int] | None = None) -> Channel:
        raise NotImplementedError

    def silent_for(self) -> float:
        return 0.0

    def ping(self, timeout: float) -> float:
        return 0.0

    def close(self) -> None: ...


SUCCESS = b"\x34"
ACCEPT = b"\x06" + ssh_wire.string("ssh-userauth")


def failure(*methods: str, partial: bool = False) -> bytes:
    return b"\x33" + ssh_wire.string(",".join(methods)) + ssh_wire.boolean(partial)


def questions(*prompts: str, count: int | None = None) -> bytes:
    texts = b"".join(ssh_wire.string(text) + b"\0" for text in prompts)
    number = len(prompts) if count is None else count
    return b"\x3c" + ssh_wire.string("title") + ssh_wire.string("") * 2 + ssh_wire.uint32(number) + texts


class Typist(NoPrompter):
    def __init__(self, answers: list[str] | None) -> None:
        self.answers = answers
        self.seen: list[tuple[str, tuple[Challenge, ...]]] = []

    def challenges(self, user: str, host: str, title: str, challenges: tuple[Challenge, ...]) -> list[str] | None:
        self.seen.append((title, challenges))
        return self.answers


def attempt(server: Scripted, prompter: NoPrompter) -> None:
    target = Target("web1", host="web1", user="ops")
    auth = UserAuth(server, target.user)
    authenticate(Exchange(server, auth, target, prompter, Deadline(5), Memory(), nullcontext))


def test_the_first_request_does_not_wait_for_the_service() -> None:
    server = Scripted(ACCEPT, SUCCESS)
    assert UserAuth(server, "ops").none(1) == Success()
    assert [payload[0] for payload in server.sent] == [5, 50]


def test_banners_are_kept_and_bounded() -> None:
    banners = [b"\x35" + ssh_wire.string(f"line {number}") + ssh_wire.string("") for number in range(50)]
    auth = UserAuth(Scripted(ACCEPT, *banners, SUCCESS), "ops")
    assert auth.none(1) == Success()
    assert auth.banners == [f"line {number}" for number in range(30, 50)]


def test_what_a_server_asks_is_made_safe_to_print() -> None:
    typist = Typist(["x"])
    server = Scripted(failure("keyboard-interactive"), questions("\x1b]0;owned\x07Code:\n"), SUCCESS)
    attempt(server, typist)
    ((title, (challenge,)),) = typist.seen
    assert title == "title"
    assert "\x1b" not in challenge.text
    assert "Code:" in challenge.text


def test_a_dialogue_without_questions_is_answered_without_a_person() -> None:
    typist = Typist(None)
    attempt(Scripted(failure("keyboard-interactive"), questions(), SUCCESS), typist)
    assert typist.seen == []


def test_a_server_that_never_stops_asking_is_left() -> None:
    endless = [failure("keyboard-interactive"), *[questions("again?")] * 1000]
    with pytest.raises(RemoteError):
        attempt(Scripted(*endless), Typist(["no"]))


def test_a_server_that_never_stops_promising_is_left() -> None:
    promises = [
        failure("keyboard-interactive"),
        *[questions("more?"), failure("keyboard-interactive", partial=True)] * 99,
    ]
    typist = Typist(["yes"])
    with pytest.raises(RemoteError) as caught:
        attempt(Scripted(*promises), typist)
    assert caught.value.kind is FailureKind.SECOND_FACTOR_WANTED
    assert len(typist.seen) <= 3


@pytest.mark.parametrize(
    "message",
    [
        questions("a", count=1 << 30),
        questions("a", count=2),
        b"\x3c",
        b"\x33\xff\xff\xff\xff",
        b"\x33",
        b"\x07nonsense",
    ],
)
def test_broken_messages_are_protocol_errors(message: bytes) -> None:
    with pytest.raises(RemoteError) as caught:
        attempt(Scripted(failure("keyboard-interactive"), message), Typist(["x"]))
    assert caught.value.kind is FailureKind.PROTOCOL


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=8))
def test_whatever_a_server_says_ends_in_a_login_or_a_typed_failure(messages: list[bytes]) -> None:
    with suppress(RemoteError):
        attempt(Scripted(*messages), Typist(["x"]))


def test_a_cut_connection_is_lost_with_the_server_s_goodbye() -> None:
    server = Scripted(failure("keyboard-interactive"))
    server.disconnected = (2, "goodbye \x1b[2J")
    with pytest.raises(RemoteError, match="goodbye") as caught:
        attempt(server, Typist(["x"]))
    assert caught.value.kind is FailureKind.LOST
    assert "\x1b" not in str(caught.value)


def test_answers_are_typed() -> None:
    server = Scripted(questions("a"), failure("password"))
    auth = UserAuth(server, "ops")
    assert auth.interactive(1) == Dialogue("title", "", (("a", False),))
    assert auth.answer(["x"], 1) == Failure(("password",), partial=False)
