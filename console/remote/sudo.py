"""Becoming root on a droplet: not at all, by ``sudo -n``, or by sudo with a password that a person types once."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

from console.remote.errors import FailureKind, RemoteError
from console.remote.prompts import Prompter
from console.remote.refusals import printable
from console.remote.transport import Transport

_TRIES = 3
_VALIDATE = 30.0
_KEPT = 4096

# What sudo says, in the C locale (sudo 1.9's own sources and Debian's PAM), and what it means.
_WANTS_PASSWORD = re.compile(
    r"a password is required|a terminal is required to read the password|no password was pro"
)
_WRONG = re.compile(r"incorrect password attempt|Sorry, try again|no password was provided|Authentication failure")
_NO_TTY = re.compile(r"you must have a tty|no tty present")
_NOT_ALLOWED = re.compile(r"is not allowed to execute|is not allowed to run sudo|command not allowed")
_NOT_IN_SUDOERS = re.compile(r"is not in the sudoers file|may not run sudo")
_NO_SUDO = re.compile(r"sudo['’:]*:? (?:command )?not found|['‘]sudo['’]: No such file")
_BROKEN = re.compile(r"sudo: (?:/|effective uid is not 0|unable to|error in|no valid sudoers)")


class Privilege:
    """How scripts become root on one droplet. Shared by all that runs there; the password lives here alone.

    Args:
        user: Who logged in.
        host: The droplet, for messages and the question.
        prompter: Asked for the password, once per session.
    """

    def __init__(self, user: str, host: str, prompter: Prompter) -> None:
        self.user = user
        self.host = host
        self._prompter = prompter
        self._password: str | None = None
        self.asked = 0
        """How often a password was found; see ``ask``."""
        self._asking = threading.Lock()

    @property
    def needed(self) -> bool:
        """False for root, who needs no sudo."""
        return self.user != "root"

    def wrap(self, command: Sequence[str]) -> tuple[list[str], bytes]:
        """``command`` as root, and what must be the first of its standard input.

        With a password ``-k`` makes sudo read it whatever it remembers: the line must never reach the command.
        """
        if not self.needed:
            return list(command), b""
        if self._password is None:
            return ["env", "LC_ALL=C", "sudo", "-n", "--", *command], b""
        return ["env", "LC_ALL=C", "sudo", "-k", "-S", "-p", "", "--", *command], self._line(self._password)

    def ask(self, transport: Transport, asked: int) -> None:
        """Ask the person for the password until sudo takes it.

        Nothing is asked where another thread did so since ``self.asked`` was ``asked``.

        Each try is a command of its own with one line of input, so that a wrong password counts once with the
        droplet's PAM, and not three times.

        Raises:
            RemoteError: SUDO_PASSWORD_WANTED where the person declines, SUDO_REFUSED after three wrong ones or
                where sudo refuses for another reason.
        """
        with self._asking:
            if self.asked != asked:
                return
            self._check_allowed(transport)
            for attempt in range(_TRIES):
                password = self._prompter.sudo_password(self.user, self.host, again=attempt > 0)
                if password is None:
                    raise _wanted(self.user, self.host)
                if self._accepted(transport, password):
                    self._password = password
                    self.asked += 1
                    return
        raise RemoteError(
            FailureKind.SUDO_REFUSED, f"{self.host}: sudo took none of {_TRIES} passwords of {self.user}"
        )

    def forget(self) -> None:
        """Forget the password."""
        self._password = None

    def _check_allowed(self, transport: Transport) -> None:
        """Refuse at once where sudo lets the user run some commands without a password, and a shell not at all.

        sudo asks for the password before it says so; but it lists what is allowed without one to whoever may run
        anything without one (sudoers(5): listpw=any).
        """
        listed = transport.run(["env", "LC_ALL=C", "sudo", "-n", "-l", "--", "sh"], timeout=_VALIDATE, limit=_KEPT)
        said = listed.stderr.decode("utf-8", "replace")
        if listed.exit_status == 1 and not said.strip():
            raise _limited(self.user, self.host)

    def _accepted(self, transport: Transport, password: str) -> bool:
        command = ["env", "LC_ALL=C", "sudo", "-k", "-S", "-p", "", "--", "sh", "-c", ":"]
        done = transport.run(command, stdin=self._line(password), timeout=_VALIDATE, limit=_KEPT)
        if done.exit_status == 0:
            return True
        said = done.stderr.decode("utf-8", "replace")
        if _WRONG.search(said):
            return False
        raise refusal(self.user, self.host, said) or RemoteError(
            FailureKind.SUDO_REFUSED,
            f"{self.host}: sudo refused {self.user}: {printable(said) or 'without a word'}",
        )

    @staticmethod
    def _line(password: str) -> bytes:
        if "\n" in password or "\0" in password:
            raise ValueError("a password for sudo is one line")
        return password.encode() + b"\n"


def refusal(user: str, host: str, complaints: str) -> RemoteError | None:
    """What sudo meant by what it said on standard error; None where it does not look like sudo's words."""
    if _WANTS_PASSWORD.search(complaints):
        return _wanted(user, host)
    said = printable(complaints)
    found: tuple[str, str] | None = None
    if _NO_TTY.search(complaints):
        found = "sudo runs only on a terminal there (requiretty)", f"add `Defaults:{user} !requiretty` with visudo"
    elif _NOT_IN_SUDOERS.search(complaints):
        found = f"{user} may not use sudo there", "log in as root, or add the user to the group sudo"
    elif _NOT_ALLOWED.search(complaints):
        return _limited(user, host)
    elif _NO_SUDO.search(complaints):
        found = "sudo is not installed there", "log in as root, or install sudo"
    elif _WRONG.search(complaints):
        found = f"sudo no longer takes the password of {user}", "try again"
    elif _BROKEN.search(complaints):
        found = "sudo does not work there", "log in as root and look at what sudo says"
    if found is None:
        return None
    what, hint = found
    return RemoteError(FailureKind.SUDO_REFUSED, f"{host}: {what}: {said}", hint=hint)


def _wanted(user: str, host: str) -> RemoteError:
    return RemoteError(
        FailureKind.SUDO_PASSWORD_WANTED,
        f"{host}: sudo wants the password of {user}",
        hint="run this where the password can be typed, log in as root, or allow sudo without a password",
    )


def _limited(user: str, host: str) -> RemoteError:
    return RemoteError(
        FailureKind.SUDO_REFUSED,
        f"{host}: sudo lets {user} run some commands only, and a shell is not among them",
        hint=f"log in as root, or allow all commands: `{user} ALL=(ALL:ALL) ALL` with visudo",
    )
