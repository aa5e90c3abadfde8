"""Why a droplet cannot be reached, told apart.

Every failure of reaching, logging in to or running something on a droplet is a ``RemoteError`` whose ``kind`` says
which one; ``str(error)`` is one plain sentence that names the host; ``hint`` says what to do about it. Texts that
came from the droplet are already made safe to print.
"""

from __future__ import annotations

from enum import Enum


class FailureKind(str, Enum):
    """What stood in the way. The value is what ``--json`` prints."""

    NAME_NOT_RESOLVED = "name not resolved"
    REFUSED = "refused"
    TIMED_OUT = "timed out"
    UNREACHABLE = "network unreachable"
    HOST_KEY_UNKNOWN = "host key unknown"
    HOST_KEY_CHANGED = "host key changed"
    HOST_KEY_REVOKED = "host key revoked"
    NO_KEY_ACCEPTED = "no key accepted"
    PASSWORD_REFUSED = "password refused"  # noqa: S105 - a kind of failure, no secret
    SECOND_FACTOR_WANTED = "second factor wanted"
    JUMP_HOST_FAILED = "jump host failed"
    SHELL_REFUSED = "shell refused"
    STILL_BOOTING = "still booting"
    LIMITED = "limited"
    """Punished or limited: UFW's limit, PerSourcePenalties, MaxStartups. ``retry_after`` where it is known."""
    PROTOCOL = "protocol error"
    LOST = "connection lost"
    PYTHON_MISSING = "Python missing"
    SUDO_PASSWORD_WANTED = "sudo password wanted"  # noqa: S105 - likewise
    SUDO_REFUSED = "sudo refused"
    COMMAND_TIMED_OUT = "command timed out"
    SCRIPT_FAILED = "script failed"
    SETTINGS = "settings"
    """The SSH settings themselves: an unreadable key file, an unknown option value, a ProxyCommand that fails."""


AUTHENTICATION = frozenset(
    {
        FailureKind.NO_KEY_ACCEPTED,
        FailureKind.PASSWORD_REFUSED,
        FailureKind.SECOND_FACTOR_WANTED,
        FailureKind.SUDO_PASSWORD_WANTED,
        FailureKind.SUDO_REFUSED,
    }
)
"""Never retried without a person."""

NEEDS_A_PERSON = AUTHENTICATION | {
    FailureKind.HOST_KEY_UNKNOWN,
    FailureKind.HOST_KEY_CHANGED,
    FailureKind.HOST_KEY_REVOKED,
    FailureKind.SETTINGS,
}


class RemoteError(Exception):
    """A droplet could not be reached, or did not do what was asked.

    Attributes:
        kind: Which failure.
        hint: What to do, or None.
        retry_after: Seconds to wait before another try, where it is known.
    """

    def __init__(
        self, kind: FailureKind, message: str, *, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.hint = hint
        self.retry_after = retry_after

    @property
    def needs_a_person(self) -> bool:
        """True where trying again by itself would change nothing, or do harm; so for what it was raised from."""
        cause = self.__cause__
        return self.kind in NEEDS_A_PERSON or (isinstance(cause, RemoteError) and cause.needs_a_person)
