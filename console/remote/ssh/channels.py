"""The streams of one command over an SSH channel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from console.remote.errors import FailureKind, RemoteError
from console.remote.process import Exit
from console.remote.ssh import paramiko_api
from console.remote.transport import Chunk, Source

_CHUNK = 1 << 16
_PIECE = 1 << 15
_SETTLE = 0.1
"""Seconds in which a closed channel turns out to be a lost connection."""
_BROKEN = paramiko_api.line_errors()


class ChannelPipes:
    """Implements ``console.remote.process.Pipes`` over an SSH channel.

    The channel's receive window (2 MiB for both outputs together) is the bounded buffer: it opens again only as the
    outputs are read, so a slow reader holds the command up.

    Args:
        channel: Open, nothing started on it.
        lost: Why the connection is gone, or None.
        released: Called once, when the channel is no longer in use.
    """

    def __init__(
        self, channel: paramiko_api.Channel, lost: Callable[[], str | None], released: Callable[[], None]
    ) -> None:
        self._channel = channel
        self.gone = lost
        self._released: Callable[[], None] | None = released
        self._changes = 0
        self._condition = threading.Condition()
        self._closed_since: float | None = None
        channel.settimeout(0.0)
        channel.on_change(self._changed)

    def _changed(self) -> None:
        with self._condition:
            self._changes += 1
            self._condition.notify_all()

    def moment(self) -> int:
        """See ``Pipes.moment``."""
        return self._changes

    def wait(self, moment: int, seconds: float, *, sending: bool) -> None:
        """See ``Pipes.wait``."""
        if self._closed_since is not None:
            seconds = min(seconds, _SETTLE / 5)
        with self._condition:
            if self._changes == moment:
                self._condition.wait(seconds)

    def receive(self) -> Chunk | None:
        """See ``Pipes.receive``."""
        channel = self._channel
        # Reading opens the window again, which sends a message: a line that breaks just then is not our affair.
        try:
            if channel.recv_ready():
                return Chunk(Source.OUT, channel.recv(_CHUNK))
            if channel.recv_stderr_ready():
                return Chunk(Source.ERR, channel.recv_stderr(_CHUNK))
        except _BROKEN:
            return None
        return None

    def outputs_ended(self) -> bool:
        """See ``Pipes.outputs_ended``."""
        return self._channel.eof_received or (self._channel.closed and self.exit() is not None)

    def send(self, data: memoryview) -> int:
        """See ``Pipes.send``."""
        try:
            return self._channel.send(bytes(data[:_PIECE]))
        except TimeoutError:
            return 0
        except _BROKEN as error:
            if reason := self.gone():
                raise RemoteError(FailureKind.LOST, reason) from error
            raise BrokenPipeError("the command has ended") from error

    def end_input(self) -> None:
        """See ``Pipes.end_input``."""
        try:
            self._channel.shutdown_write()
        except _BROKEN:
            return  # there is nobody to tell

    def exit(self) -> Exit | None:
        """See ``Pipes.exit``."""
        if self._channel.exit_signal is not None:
            return Exit(None, self._channel.exit_signal)
        if self._channel.exit_status >= 0:
            return Exit(self._channel.exit_status)
        if not self._channel.closed:
            return None
        # A channel that the server closed without a word, or the first that is seen of a lost connection.
        if self._closed_since is None:
            self._closed_since = time.monotonic()
        settled = time.monotonic() - self._closed_since > _SETTLE
        return Exit(None) if settled and not self.gone() else None

    def close(self) -> None:
        """See ``Pipes.close``."""
        with self._condition:
            released, self._released = self._released, None
        if released is None:
            return
        try:
            self._channel.close()
        except _BROKEN:
            self._changed()  # closed all the same
        released()
