"""How many channels a login may have at once."""

from __future__ import annotations

import threading
import time

from console.remote.errors import FailureKind, RemoteError

AT_ONCE = 8
"""sshd's MaxSessions is 10 by default, and the rest is for a person's own."""


class Slots:
    """Counts the channels of one login; waiting for a free one counts against the caller's deadline."""

    def __init__(self, host: str, count: int = AT_ONCE) -> None:
        self._host = host
        self._free = count
        self._closed = False
        self._condition = threading.Condition()

    def take(self, deadline: float) -> None:
        """Take a slot, by ``deadline`` on the monotonic clock.

        Raises:
            RemoteError: COMMAND_TIMED_OUT, or LOST where the login was closed meanwhile.
        """
        with self._condition:
            while self._free == 0 and not self._closed:
                if not self._condition.wait(max(0.0, deadline - time.monotonic())):
                    raise RemoteError(
                        FailureKind.COMMAND_TIMED_OUT, f"{self._host}: all {AT_ONCE} channels stayed in use"
                    )
            if self._closed:
                raise RemoteError(FailureKind.LOST, f"{self._host}: the connection is closed")
            self._free -= 1

    def give(self) -> None:
        """Give a slot back."""
        with self._condition:
            self._free += 1
            self._condition.notify()

    def close(self) -> None:
        """Wake all who wait, with LOST."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
