"""The terminal's questions on a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from console.cli.prompts import TerminalPrompter
from console.remote.prompts import Challenge, HostKeyAnswer, HostKeyQuestion

QUESTION = HostKeyQuestion("gpu-1:2222", "ssh-ed25519", "SHA256:abc", ("ssh-rsa",))


class Person:
    """The other end of the terminal: waits for words on the screen, then types."""

    def __init__(self) -> None:
        self.fd, terminal = pty.openpty()
        self.path = os.ttyname(terminal)
        self._terminal = terminal
        self.seen = b""

    def read_until(self, words: bytes) -> None:
        while words not in self.seen:
            self.seen += os.read(self.fd, 4096)

    def type(self, text: bytes) -> None:
        os.write(self.fd, text)

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self._terminal)[3] & termios.ECHO)

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._terminal)


@pytest.fixture
def person() -> Iterator[Person]:
    made = Person()
    yield made
    made.close()


def ask(question: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(question()), daemon=True)
    thread.start()
    return thread, answers


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (b"yes\n", HostKeyAnswer.ALWAYS),
        (b"SHA256:abc\n", HostKeyAnswer.ALWAYS),
        (b" Once \n", HostKeyAnswer.ONCE),
        (b"no\n", HostKeyAnswer.REFUSE),
        (b"\n", HostKeyAnswer.REFUSE),
        (b"\x04", HostKeyAnswer.REFUSE),
    ],
)
def test_a_host_key_is_trusted_only_by_a_clear_word(person: Person, typed: bytes, answer: HostKeyAnswer) -> None:
    prompter = TerminalPrompter(person.path)
    thread, answers = ask(lambda: prompter.host_key(QUESTION))
    person.read_until(b"until this program ends) ")
    person.type(typed)
    thread.join(10)
    assert answers == [answer]
    command = b"  ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
    for words in (b"gpu-1:2222", b"ED25519", b"SHA256:abc", b"ssh-rsa", command):
        assert words in person.seen
    assert all(len(line.rstrip(b"\r")) <= 80 for line in person.seen.split(b"\n"))


def test_an_unclear_word_is_asked_about_again(person: Person) -> None:
    prompter = TerminalPrompter(person.path)
    thread, answers = ask(lambda: prompter.host_key(QUESTION))
    for typed in (b"y\n", b"SHA256:abd\n"):
        person.read_until(b"program ends) " if typed == b"y\n" else b"or the fingerprint: ")
        person.type(typed)
    person.read_until(b"or the fingerprint: ")
    person.type(b"no\n")
    thread.join(10)
    assert answers == [HostKeyAnswer.REFUSE]


def test_secrets_are_not_echoed_and_the_echo_comes_back(person: Person) -> None:
    prompter = TerminalPrompter(person.path)
    thread, answers = ask(lambda: prompter.password("root", "gpu-1", again=False))
    person.read_until(b"Password of root on gpu-1: ")
    while person.echoes():
        time.sleep(0.005)
    person.type(b"hunter2\n")
    thread.join(10)
    assert answers == ["hunter2"]
    assert person.echoes()
    thread, answers = ask(lambda: prompter.passphrase("/k", again=True))
    person.read_until(b"That was not it. Passphrase for /k: ")
    assert b"hunter2" not in person.seen
    while person.echoes():
        time.sleep(0.005)
    person.type(b"\n")
    thread.join(10)
    assert answers == [None]


def test_the_echo_comes_back_when_the_program_ends_in_the_middle_of_a_question(person: Person) -> None:
    prompter = TerminalPrompter(person.path)
    ask(lambda: prompter.sudo_password("ops", "gpu-1", again=False))
    person.read_until(b"sudo password of ops on gpu-1: ")
    while person.echoes():
        time.sleep(0.005)
    prompter.close()
    assert person.echoes()
    person.type(b"\n")


def test_second_factors_are_asked_one_by_one(person: Person) -> None:
    prompter = TerminalPrompter(person.path)
    challenges = (Challenge("Verification code:", echo=True), Challenge("PIN: ", echo=False))
    thread, answers = ask(lambda: prompter.challenges("me", "gpu-1", "Duo", challenges))
    person.read_until(b"me on gpu-1: Duo")
    person.read_until(b"Verification code: ")
    person.type(b"123456\n")
    person.read_until(b"PIN: ")
    while person.echoes():
        time.sleep(0.005)
    person.type(b"\n")
    thread.join(10)
    assert answers == [["123456", ""]]


def test_one_question_at_a_time_and_the_persons_time_is_counted(person: Person) -> None:
    now = [100.0]
    prompter = TerminalPrompter(person.path, clock=lambda: now[0])
    first, _ = ask(lambda: prompter.host_key(QUESTION))
    person.read_until(b"until this program ends) ")
    second, _ = ask(lambda: prompter.passphrase("/other", again=False))
    now[0] += 30
    assert prompter.waited() == 30
    assert b"/other" not in person.seen
    person.type(b"once\n")
    first.join(10)
    person.read_until(b"Passphrase for /other: ")
    while person.echoes():
        time.sleep(0.005)
    person.type(b"x\n")
    second.join(10)
    assert prompter.waited() == 30


def test_a_terminal_that_goes_away_declines() -> None:
    person = Person()
    prompter = TerminalPrompter(person.path)
    thread, answers = ask(lambda: prompter.password("root", "gpu-1", again=False))
    person.read_until(b"Password of root on gpu-1: ")
    person.close()
    thread.join(10)
    assert answers == [None]


def test_without_a_terminal_there_is_nobody_to_ask() -> None:
    with pytest.raises(OSError):
        TerminalPrompter("/nonexistent/tty")


def test_a_terminal_in_raw_mode_still_ends_a_line(person: Person) -> None:
    tty.setraw(person.fd)
    prompter = TerminalPrompter(person.path)
    thread, answers = ask(lambda: prompter.host_key(QUESTION))
    person.read_until(b"until this program ends) ")
    person.type(b"once\r\n")
    thread.join(10)
    assert answers == [HostKeyAnswer.ONCE]
