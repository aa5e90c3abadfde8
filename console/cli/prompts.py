"""A login's questions on the terminal: /dev/tty, so that they work while the output is piped."""

from __future__ import annotations

import contextlib
import os
import termios
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from console.remote.prompts import Challenge, HostKeyAnswer, HostKeyQuestion, NoPrompter

TTY = "/dev/tty"
_MAX_ANSWER = 4096
_Answer = TypeVar("_Answer")


_TRUST = {
    "yes": HostKeyAnswer.ALWAYS,
    "once": HostKeyAnswer.ONCE,
    "no": HostKeyAnswer.REFUSE,
    "": HostKeyAnswer.REFUSE,
}


class TerminalPrompter:
    """Asks on the terminal, one question at a time whatever thread asks; what is typed is kept nowhere here."""

    def __init__(self, path: str = TTY, clock: Callable[[], float] = time.monotonic) -> None:
        """Open the terminal.

        Raises:
            OSError: There is none.
        """
        self._fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        self._lock = threading.Lock()
        self._clock = clock
        self._echoing: list[object] | None = None
        self._waited = 0.0
        self._asked_at: float | None = None

    def waited(self) -> float:
        """Seconds that a person has had so far: no deadline of ours counts them."""
        asked_at = self._asked_at
        return self._waited + (self._clock() - asked_at if asked_at is not None else 0.0)

    def close(self) -> None:
        """Give the terminal its echo back, should a question still be open (after ctrl-c)."""
        before, self._echoing = self._echoing, None
        if before is not None:
            with contextlib.suppress(OSError, termios.error):  # the terminal itself may have gone
                termios.tcsetattr(self._fd, termios.TCSANOW, before)  # type: ignore[arg-type]
                self._write("\n")

    def host_key(self, question: HostKeyQuestion) -> HostKeyAnswer:
        """Show the fingerprint; "yes", "once", the fingerprint itself, "no" or nothing; else ask again."""
        kind = question.key_type.removeprefix("ssh-").upper()
        lines = [
            f"The host key of {question.host} is not known.",
            f"{kind} key fingerprint: {question.fingerprint}",
        ]
        if question.other_types:
            lines.append(f"Keys of other types are known for it ({', '.join(question.other_types)}): be careful.")
        lines.append("Compare it with what the droplet's own console shows for")
        lines.append(f"  ssh-keygen -lf /etc/ssh/ssh_host_{_file_word(question.key_type)}_key.pub")
        lines.append("Trust it? (yes/no/fingerprint, or once: until this program ends) ")

        def ask() -> HostKeyAnswer:
            words = "\n".join(lines)
            while (answer := self._read(words, echo=True)) is not None:
                word = answer.strip()
                if word == question.fingerprint:
                    return HostKeyAnswer.ALWAYS
                if word.lower() in _TRUST:
                    return _TRUST[word.lower()]
                words = "Type yes (for good), once (until this program ends), no, or the fingerprint: "
            return HostKeyAnswer.REFUSE

        return self._alone(ask)

    def passphrase(self, key_file: str, *, again: bool) -> str | None:
        """The passphrase of a private key; nothing typed skips the key."""
        return self._secret(f"{_again(again)}Passphrase for {key_file}: ")

    def password(self, user: str, host: str, *, again: bool) -> str | None:
        """The login password; nothing typed declines."""
        return self._secret(f"{_again(again)}Password of {user} on {host}: ")

    def challenges(self, user: str, host: str, title: str, challenges: tuple[Challenge, ...]) -> list[str] | None:
        """An answer for each of the server's questions; an empty one counts, the end of input declines."""

        def ask() -> list[str] | None:
            answers: list[str] = []
            heading = f"{user} on {host}" + (f": {title}" if title else "") + "\n"
            for number, challenge in enumerate(challenges):
                prompt = challenge.text if challenge.text.endswith(" ") else challenge.text + " "
                answer = self._read((heading if number == 0 else "") + prompt, echo=challenge.echo)
                if answer is None:
                    return None
                answers.append(answer)
            return answers

        return self._alone(ask)

    def sudo_password(self, user: str, host: str, *, again: bool) -> str | None:
        """The password for sudo; nothing typed declines."""
        return self._secret(f"{_again(again)}sudo password of {user} on {host}: ")

    def _secret(self, prompt: str) -> str | None:
        return self._alone(lambda: self._read(prompt, echo=False)) or None

    def _alone(self, ask: Callable[[], _Answer]) -> _Answer:
        with self._lock:
            self._asked_at = self._clock()
            try:
                return ask()
            finally:
                self._waited += self._clock() - self._asked_at
                self._asked_at = None

    def _read(self, prompt: str, *, echo: bool) -> str | None:
        """One line; None at the end of input, or when the terminal went."""
        try:
            return self._ask(prompt, echo)
        except (OSError, termios.error):
            return None

    def _ask(self, prompt: str, echo: bool) -> str | None:
        self._write(prompt)
        if echo:
            return self._line()
        before = termios.tcgetattr(self._fd)
        silent = list(before)
        silent[3] = before[3] & ~termios.ECHO
        self._echoing = before
        try:
            # FLUSH drops what was typed ahead: it was not meant as an answer to this.
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, silent)
            return self._line()
        finally:
            self.close()

    def _line(self) -> str | None:
        data = b""
        while b"\n" not in data and len(data) < _MAX_ANSWER:
            chunk = os.read(self._fd, _MAX_ANSWER)
            if not chunk:
                return None
            data += chunk
        return data.split(b"\n")[0].decode("utf-8", "surrogateescape").removesuffix("\r")

    def _write(self, text: str) -> None:
        os.write(self._fd, text.encode("utf-8", "replace"))


def terminal_prompter() -> TerminalPrompter | NoPrompter:
    """A prompter for the terminal that this process has; one that declines everything where it has none."""
    try:
        return TerminalPrompter()
    except OSError:
        return NoPrompter()


def _file_word(key_type: str) -> str:
    """How sshd's own key file is called: "ssh-ed25519" is ed25519, "ecdsa-sha2-nistp256" ecdsa."""
    return next((word for word in ("ed25519", "ecdsa", "rsa") if word in key_type), "*")


def _again(again: bool) -> str:
    return "That was not it. " if again else ""
