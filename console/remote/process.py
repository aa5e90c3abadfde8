"""A running command, whatever carries its streams: deadlines, the start mark, input frames, exit status.

``ProcessOver`` implements ``console.remote.transport.Process`` over a ``Pipes``: the SSH channel, or local
pipes. It has no thread: whoever waits, waits in the caller's thread.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from console.remote import refusals, shell
from console.remote.errors import FailureKind, RemoteError
from console.remote.transport import Chunk, Completed, Source

NOISE_KEPT = 4096
"""Bytes kept of what came before the start mark and on standard error: for the diagnosis."""
NOISE_ALLOWED = 1 << 20
"""Bytes before the start mark after which it is not waited for any longer."""
_ROOM_FOR_END = 5.0


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command ended: a status, or a signal's name without SIG; neither where the other side does not say."""

    status: int | None
    signal: str | None = None


class Pipes(Protocol):
    """The raw streams of one command. No call but ``wait`` blocks."""

    def moment(self) -> int:
        """Taken before looking at the streams, so that ``wait`` does not miss what changes in between."""

    def wait(self, moment: int, seconds: float, *, sending: bool) -> None:
        """Return once something changed since ``moment``, or after ``seconds``; now and then for no reason."""

    def receive(self) -> Chunk | None:
        """Some output, None where there is none now."""

    def outputs_ended(self) -> bool:
        """No more output will come. What has come may still wait to be received."""

    def send(self, data: memoryview) -> int:
        """Send some of ``data``; how much is returned, 0 where there is no room now.

        Raises:
            BrokenPipeError: Nobody takes it any more.
        """

    def end_input(self) -> None:
        """End standard input for real."""

    def exit(self) -> Exit | None:
        """How the command ended; None while it runs."""

    def gone(self) -> str | None:
        """Why the line is lost, or None while it is not."""

    def close(self) -> None:
        """Free everything; the command's input ends. May be called from any thread, and again."""


class ProcessOver:
    """Implements ``Process`` over ``pipes``.

    Args:
        pipes: The command's streams, owned from here on.
        host: For messages.
        guard: Input travels in frames (``shell.frame``).
    """

    def __init__(self, pipes: Pipes, host: str, *, guard: bool) -> None:
        self._pipes = pipes
        self._host = host
        self._guard = guard
        self._closed = False
        self._input_ended = False
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._framing = threading.Lock()
        self._end_frame = b""
        self._mark_seen = False
        self._noise = bytearray()
        self._noise_size = 0
        self._complaints = bytearray()

    # --- the contract

    def read(self, timeout: float) -> Chunk | None:
        """See ``Process.read``."""
        deadline = time.monotonic() + timeout
        while True:
            moment = self._pipes.moment()
            ended = self._pipes.outputs_ended()
            if chunk := self._receive():
                return chunk
            if self._closed:
                return None
            self._check_line()
            if ended:
                self._check_started()
                return None
            self._send_end_frame()
            self._wait(moment, deadline, "no output", sending=bool(self._end_frame))

    def write(self, data: bytes, timeout: float) -> None:
        """See ``Process.write``."""
        deadline = time.monotonic() + timeout
        if not data:
            return
        with self._writing:
            if self._input_ended:
                raise BrokenPipeError(f"{self._host}: the command's input was closed")
            rest = whole = memoryview(shell.frame(data) if self._guard else data)
            try:
                while rest:
                    moment = self._pipes.moment()
                    sent = self._send(rest)
                    rest = rest[sent:]
                    if rest and (not sent or time.monotonic() > deadline):
                        self._wait(moment, deadline, "the input was not taken", sending=True)
            except TimeoutError:
                # In the middle of a frame nothing else can follow.
                self._input_ended = len(rest) < len(whole)
                raise

    def close_stdin(self) -> None:
        """See ``Process.close_stdin``.

        A guarded command is told by a frame, which needs room like any input. It is waited for, for a while; after
        that it is sent while the command is read or waited for.
        """
        deadline = time.monotonic() + _ROOM_FOR_END
        with self._writing:
            if self._input_ended or self._closed:
                return
            self._input_ended = True
            if not self._guard:
                self._pipes.end_input()
                return
            self._end_frame = shell.frame(b"")
            while True:
                moment = self._pipes.moment()
                self._send_end_frame()
                if not self._end_frame or time.monotonic() > deadline:
                    return
                self._pipes.wait(moment, deadline - time.monotonic(), sending=True)

    def wait(self, timeout: float) -> Completed:
        """See ``Process.wait``."""
        deadline = time.monotonic() + timeout
        while True:
            moment = self._pipes.moment()
            if found := self._pipes.exit():
                return self._completed(found)
            self._check_line()
            self._send_end_frame()
            if not self._receive():
                self._wait(moment, deadline, "it still runs", sending=bool(self._end_frame))

    def close(self) -> None:
        """See ``Process.close``."""
        self._closed = True
        self._pipes.close()

    def __enter__(self) -> ProcessOver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- beyond it

    def finish(self, stdin: bytes, timeout: float, limit: int) -> Completed:
        """Feed a guarded command, drain both outputs at the same time, and take the exit status.

        Raises:
            TimeoutError: Not over in time.
            RemoteError: LOST, SHELL_REFUSED, STILL_BOOTING.
        """
        deadline = time.monotonic() + timeout
        rest = memoryview(shell.frame(stdin) + shell.frame(b"") if stdin else b"")
        kept = {Source.OUT: bytearray(), Source.ERR: bytearray()}
        truncated = False
        while True:
            moment = self._pipes.moment()
            ended = self._pipes.outputs_ended()
            sent = 0
            if rest:
                try:
                    sent = self._send(rest)
                    rest = rest[sent:]
                except BrokenPipeError:
                    rest = rest[:0]
            chunk = self._receive()
            if chunk:
                room = limit - len(kept[chunk.source])
                truncated = truncated or len(chunk.data) > room
                kept[chunk.source] += chunk.data[: max(room, 0)]
            elif ended and (found := self._pipes.exit()):
                return self._completed(found, bytes(kept[Source.OUT]), bytes(kept[Source.ERR]), truncated)
            else:
                self._check_line()
                if not sent:
                    self._wait(moment, deadline, "it still runs", sending=bool(rest))
            if time.monotonic() > deadline:
                raise TimeoutError("it still runs")

    @property
    def complaints(self) -> bytes:
        """The first that came on standard error, 4 KiB at most: for the diagnosis."""
        return bytes(self._complaints)

    # --- inside

    def _receive(self) -> Chunk | None:
        """The next chunk that is the command's own; None where there is none now."""
        with self._reading:
            while chunk := self._pipes.receive():
                if chunk.source is Source.ERR:
                    self._complaints += chunk.data[: NOISE_KEPT - len(self._complaints)]
                    self._count_noise(chunk.data)
                    return chunk
                if self._mark_seen:
                    return chunk
                if own := self._past_mark(chunk.data):
                    return Chunk(Source.OUT, own)
            return None

    def _past_mark(self, data: bytes) -> bytes:
        """Take the login shell's noise away; what is left is the command's."""
        self._noise += data
        before, mark, after = self._noise.partition(shell.STARTED)
        if mark:
            self._mark_seen = True
            self._noise = before[:NOISE_KEPT]
            return bytes(after)
        self._count_noise(data)
        # The first of it is kept for the diagnosis, and the last, where the mark may have begun.
        if len(self._noise) > 4 * NOISE_KEPT:
            del self._noise[NOISE_KEPT : -len(shell.STARTED)]
        return b""

    def _count_noise(self, data: bytes) -> None:
        """Wait no longer for a mark before which too much comes, on either output."""
        if not self._mark_seen:
            self._noise_size += len(data)
            if self._noise_size > NOISE_ALLOWED:
                raise refusals.refused(self._host, bytes(self._noise), self.complaints)

    def _send(self, data: memoryview) -> int:
        if self._closed or self._pipes.exit():
            raise BrokenPipeError(f"{self._host}: the command has ended")
        self._check_line()
        return self._pipes.send(data)

    def _send_end_frame(self) -> None:
        with self._framing:
            try:
                if self._end_frame:
                    self._end_frame = self._end_frame[self._send(memoryview(self._end_frame)) :]
            except BrokenPipeError:
                self._end_frame = b""  # it ended by itself

    def _wait(self, moment: int, deadline: float, what: str, *, sending: bool = False) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self._host}: {what} in time")
        self._pipes.wait(moment, left, sending=sending)

    def _check_line(self) -> None:
        if self._closed:
            raise RemoteError(FailureKind.LOST, f"{self._host}: the command was closed on this side")
        if reason := self._pipes.gone():
            raise RemoteError(FailureKind.LOST, f"{self._host}: {reason}")

    def _check_started(self) -> None:
        """Tell a login shell that never let us through from a command that ended."""
        while not self._mark_seen and self._receive():
            pass  # the mark may be among what was not read
        if not self._mark_seen and not self._closed:
            raise refusals.refused(self._host, bytes(self._noise), self.complaints)

    def _completed(self, found: Exit, out: bytes = b"", err: bytes = b"", truncated: bool = False) -> Completed:
        self._check_started()
        if found.status is None and found.signal is None:
            raise RemoteError(FailureKind.PROTOCOL, f"{self._host} did not say how the command ended")
        return Completed(found.status, out, err, found.signal, truncated)
