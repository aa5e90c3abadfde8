"""paramiko's packets, with an end to every write. Imported only by ``paramiko_client``."""

from __future__ import annotations

import errno
import time
from typing import Any

from paramiko.packet import Packetizer

from console.remote.ssh.paramiko_api import Stream

STALLED_AFTER = 15.0
"""Seconds without a single byte sent, after which a connection counts as dead."""


class ClientPacketizer(Packetizer):  # type: ignore[misc]
    """Writes with an end."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._stream = stream
        self.read_at = time.monotonic()
        self.writing_since: float | None = None

    def read_message(self) -> Any:
        """The next message, with a note of when it came."""
        message = super().read_message()
        self.read_at = time.monotonic()
        return message

    def write_all(self, out: bytes) -> None:
        """Send all of ``out``.

        Raises:
            EOFError: The connection is gone, or took nothing for ``STALLED_AFTER`` seconds.
        """
        rest = memoryview(out)
        progress = self.writing_since = time.monotonic()
        try:
            while rest:
                try:
                    sent = self._stream.send(bytes(rest))
                except OSError as error:
                    if not isinstance(error, TimeoutError) and error.errno != errno.EAGAIN:
                        raise EOFError(str(error)) from error
                    if self.closed or time.monotonic() - progress > STALLED_AFTER:
                        raise EOFError("the other side takes no more data") from error
                    continue
                if sent <= 0:
                    raise EOFError("the connection is closed")
                rest = rest[sent:]
                progress = time.monotonic()
        finally:
            self.writing_since = None
