"""The questions that a login may have to put to a person.

The command line and the screens each implement ``Prompter``. What is typed stays in memory for the session alone.
A None answer means that the person declined.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class HostKeyAnswer(Enum):
    """What to do with a host key that is not known."""

    REFUSE = "refuse"
    ONCE = "once"
    """For this session only."""
    ALWAYS = "always"
    """Written to the app-owned known hosts file."""


@dataclass(frozen=True, slots=True)
class HostKeyQuestion:
    """An unknown host key.

    Attributes:
        host: As the person knows it, with the port where it is not 22.
        key_type: For example "ssh-ed25519".
        fingerprint: "SHA256:...", as ``ssh-keygen -l`` prints it.
        other_types: Key types under which this host is already known, if any: a reason for doubt.
    """

    host: str
    key_type: str
    fingerprint: str
    other_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Challenge:
    """One field of a keyboard-interactive dialogue; the text is the server's, made safe to print."""

    text: str
    echo: bool


class Prompter(Protocol):
    """Asks a person. May be called from any thread; only one question is open at a time."""

    def host_key(self, question: HostKeyQuestion) -> HostKeyAnswer:
        """Whether to trust this key."""

    def passphrase(self, key_file: str, *, again: bool) -> str | None:
        """The passphrase of a private key; ``again`` after a wrong one."""

    def password(self, user: str, host: str, *, again: bool) -> str | None:
        """The login password."""

    def challenges(self, user: str, host: str, title: str, challenges: tuple[Challenge, ...]) -> list[str] | None:
        """Keyboard-interactive: an answer for each challenge."""

    def sudo_password(self, user: str, host: str, *, again: bool) -> str | None:
        """The password for sudo on that host."""


class NoPrompter:
    """Nobody to ask: every question is declined."""

    def host_key(self, question: HostKeyQuestion) -> HostKeyAnswer:
        """Refuse."""
        return HostKeyAnswer.REFUSE

    def passphrase(self, key_file: str, *, again: bool) -> str | None:
        """Decline."""
        return None

    def password(self, user: str, host: str, *, again: bool) -> str | None:
        """Decline."""
        return None

    def challenges(self, user: str, host: str, title: str, challenges: tuple[Challenge, ...]) -> list[str] | None:
        """Decline."""
        return None

    def sudo_password(self, user: str, host: str, *, again: bool) -> str | None:
        """Decline."""
        return None
