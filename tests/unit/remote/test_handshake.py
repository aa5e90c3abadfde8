from __future__ import annotations

import json
import time
from collections import deque

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.scripts import handshake
from console.remote.scripts.bundle import Bundle
from console.remote.scripts.handshake import Handshake
from console.remote.shell import MARK
from console.remote.transport import Chunk, Source


def said(**answer: object) -> Chunk:
    return Chunk(Source.OUT, MARK + json.dumps(answer).encode() + b"\n")


class SlowProcess:
    """Says one thing after the other, each after some seconds."""

    def __init__(self, *says: tuple[float, Chunk | None]) -> None:
        self._says = deque(says)
        self.written = b""

    def read(self, timeout: float) -> Chunk | None:
        seconds, chunk = self._says.popleft()
        if seconds > timeout:
            time.sleep(timeout)
            raise TimeoutError
        if seconds:
            time.sleep(seconds)
        return chunk

    def write(self, data: bytes, timeout: float) -> None:
        self.written += data


BUNDLE = Bundle({"remote_scripts/x.py": b"pass\n"})


def shake(process: SlowProcess, seconds: float) -> handshake.Greeting:
    return Handshake(process, "web1", time.monotonic() + seconds).greeting(lambda: BUNDLE)  # type: ignore[arg-type]


def test_a_slow_line_is_given_the_time_that_the_archive_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "_SLOWEST", len(BUNDLE.archive) / 5)  # five seconds for it
    process = SlowProcess((0.0, said(need=BUNDLE.id)), (0.4, said(hello=1)))
    assert shake(process, 0.2).answer == {"hello": 1}
    assert process.written.endswith(BUNDLE.archive)


def test_without_an_archive_on_its_way_nothing_is_waited_for_longer() -> None:
    with pytest.raises(RemoteError, match="did not start in time") as caught:
        shake(SlowProcess((1.0, said(hello=1))), 0.2)
    assert caught.value.kind is FailureKind.COMMAND_TIMED_OUT


def test_complaints_without_end_keep_no_deadline_from_passing() -> None:
    endless = [(0.0, Chunk(Source.ERR, b"no\n"))] * 1_000_000
    began = time.monotonic()
    with pytest.raises(RemoteError, match="did not start in time: no no"):
        shake(SlowProcess(*endless), 0.2)
    assert time.monotonic() - began < 5
