"""The first exchange with a starting script: noise, the archive where it is wanted, hello (docs/wire.md 1)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from console.remote.errors import FailureKind, RemoteError
from console.remote.refusals import printable
from console.remote.scripts.bundle import Bundle
from console.remote.shell import MARK
from console.remote.transport import Process, Source

_NOISE_KEPT = 4096
_FIRST_LINE = 1 << 16
_SLOWEST = 1024.0
"""Bytes a second: on a line slower than this nothing is of use."""
_HUNG_S = 30.0
"""Seconds to leave a droplet alone where a start hangs: a login shell that hangs stays there, one for each try."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """How a script began.

    Attributes:
        answer: Its hello or its error; empty where it ended without either.
        rest: The first bytes of the script's own output.
        complaints: What came on standard error.
    """

    answer: Mapping[str, Any]
    rest: bytes
    complaints: str


class Handshake:
    """One start of a script.

    Args:
        process: Just opened.
        host: For messages.
        deadline: On the monotonic clock, for all of it.
    """

    def __init__(self, process: Process, host: str, deadline: float) -> None:
        self._process = process
        self._host = host
        self._deadline = deadline
        self._buffer = b""
        self._noise = b""
        self._complaints = b""
        self._sent = False

    def send(self, data: bytes) -> None:
        """Write to the script's input.

        A script that ends before it took everything is no failure yet: what it said tells why.
        """
        try:
            self._process.write(data, self._left())
        except BrokenPipeError:
            return
        except TimeoutError as error:
            raise self._too_late() from error

    def greeting(self, bundle: Callable[[], Bundle]) -> Greeting:
        """Read up to the hello or the error, and send the archive where it is asked for.

        Raises:
            RemoteError: COMMAND_TIMED_OUT, LOST, SHELL_REFUSED, STILL_BOOTING.
        """
        while True:
            answer = self._next_answer()
            if answer is None:
                return Greeting({}, b"", self._complaints.decode("utf-8", "replace"))
            if "need" in answer and not self._sent and answer["need"] == bundle().id:
                self._sent = True
                archive = bundle().archive
                # The time-out is for answers; a line that is dead while this travels is noticed by itself.
                self._deadline += len(archive) / _SLOWEST
                self.send(len(archive).to_bytes(8, "big") + archive)
            elif "hello" in answer or "error" in answer:
                return Greeting(answer, self._buffer, self._complaints.decode("utf-8", "replace"))

    def said(self) -> str:
        """What came instead of a greeting, safe to print."""
        return printable(self._noise + b" " + self._complaints[-300:]).strip() or "it said nothing"

    def _next_answer(self) -> dict[str, Any] | None:
        """The next marked line; what is not marked is noise. None at the end."""
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                before, mark, text = line.partition(MARK)
                self._noise = (self._noise + before)[:_NOISE_KEPT]
                answer = _parse(text) if mark else None
                if answer is not None:
                    return answer
            elif len(line) > _FIRST_LINE:
                self._noise, self._buffer = (self._noise + line)[:_NOISE_KEPT], line[-len(MARK) :]
            elif not self._more():
                self._noise = (self._noise + line)[:_NOISE_KEPT]
                return None

    def _more(self) -> bool:
        if time.monotonic() > self._deadline:
            raise self._too_late()
        try:
            chunk = self._process.read(self._left())
        except TimeoutError as error:
            raise self._too_late() from error
        if chunk is None:
            return False
        if chunk.source is Source.OUT:
            self._buffer += chunk.data
        else:
            self._complaints = (self._complaints + chunk.data)[-_NOISE_KEPT:]
        return True

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _too_late(self) -> RemoteError:
        return RemoteError(
            FailureKind.COMMAND_TIMED_OUT,
            f"{self._host}: the script did not start in time: {self.said()}",
            hint="see how long `ssh HOST true` takes: what the login shell reads first (.bashrc) may hang, or the"
            " home folder, or the droplet is overloaded",
            retry_after=_HUNG_S,
        )


def _parse(text: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None
