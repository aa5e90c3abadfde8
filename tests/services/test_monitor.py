"""The monitor against lines that behave as told; the real ones are in tests/lab."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from queue import Empty, Queue

import pytest

from console.remote import backoff
from console.remote.errors import FailureKind, RemoteError
from console.services.link import Event, Phase
from console.services.monitor import Monitor


def tick(seq: int) -> dict[str, object]:
    return {"seq": seq, "time": 100.0 + seq, "mono": 50.0 + seq, "full": True, "doc": {"host": {"hostname": "h"}}}


class ScriptedLine:
    """Plays its steps: a mapping is a line, an exception is raised, None is the end; then silence."""

    def __init__(self, *steps: Mapping[str, object] | BaseException | None) -> None:
        self.steps = list(steps)
        self.closed = threading.Event()
        self.probes = 0
        self.answers = True

    def read(self, timeout: float) -> Mapping[str, object] | None:
        if not self.steps:
            if self.closed.wait(0.01):
                raise RemoteError(FailureKind.LOST, "closed")
            raise TimeoutError
        step = self.steps.pop(0)
        if isinstance(step, BaseException):
            raise step
        return step

    def probe(self, timeout: float) -> float:
        self.probes += 1
        if not self.answers:
            raise RemoteError(FailureKind.LOST, "no answer")
        return 0.02

    def close(self) -> None:
        self.closed.set()


class Watched:
    def __init__(self, open_line: Callable[[], ScriptedLine]) -> None:
        self.queue: Queue[Event] = Queue()
        self.monitor = Monitor("d", open_line=open_line, emit=self.queue.put, interval=1.0)
        self.monitor.start()

    def until(self, wanted: Phase | int) -> Event:
        """The first event that is in this phase, or a sample with this number."""
        try:
            while True:
                event = self.queue.get(timeout=5)
                if event.link is not None and event.link.phase is wanted:
                    return event
                if event.sample is not None and event.sample.seq == wanted:
                    return event
        except Empty:
            pytest.fail(f"never: {wanted}")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "delay", lambda failures, **_: None if _["error"].needs_a_person else 0.01)


def test_samples_come_and_the_line_is_live() -> None:
    line = ScriptedLine(tick(0), tick(1))
    watched = Watched(lambda: line)
    watched.until(Phase.CONNECTING)
    watched.until(0)
    watched.until(Phase.LIVE)
    second = watched.until(1).sample
    assert second is not None
    assert second.interval == 1.0
    watched.monitor.stop()
    assert line.closed.is_set()
    watched.until(Phase.CLOSED)


def test_silence_is_said_and_the_line_is_probed() -> None:
    line = ScriptedLine(tick(0))
    watched = Watched(lambda: line)
    stalled = watched.until(Phase.STALLED).link
    assert stalled is not None
    assert stalled.words.startswith("no data for")
    line.steps = [tick(1)]
    watched.until(Phase.LIVE)
    assert line.probes > 0
    watched.monitor.stop()


@pytest.mark.usefixtures("quick")
def test_a_dead_line_is_opened_anew() -> None:
    dead, new = ScriptedLine(tick(0)), ScriptedLine(tick(0), tick(1))
    dead.answers = False
    lines = [dead, new]
    watched = Watched(lambda: lines.pop(0))
    waiting = watched.until(Phase.WAITING).link
    assert waiting is not None
    assert waiting.error is not None
    assert waiting.error.kind is FailureKind.LOST
    watched.until(1)
    assert dead.closed.is_set()
    watched.monitor.stop()


@pytest.mark.usefixtures("quick")
def test_a_stream_that_ends_by_itself_is_opened_anew() -> None:
    lines = [ScriptedLine(tick(0), None), ScriptedLine(tick(0), tick(1))]
    watched = Watched(lambda: lines.pop(0))
    watched.until(Phase.WAITING)
    watched.until(1)
    watched.monitor.stop()


@pytest.mark.usefixtures("quick")
def test_what_needs_a_person_is_never_tried_again_by_itself() -> None:
    tries: list[int] = []

    def refuse() -> ScriptedLine:
        tries.append(1)
        if len(tries) == 1:
            raise RemoteError(FailureKind.NO_KEY_ACCEPTED, "d: no key accepted (offered: one)")
        return ScriptedLine(tick(0))

    watched = Watched(refuse)
    failed = watched.until(Phase.FAILED).link
    assert failed is not None
    assert failed.retry_at is None
    with pytest.raises(Empty):
        watched.queue.get(timeout=0.3)
    assert len(tries) == 1
    watched.monitor.retry()
    watched.until(0)
    watched.monitor.stop()


@pytest.mark.usefixtures("quick")
def test_a_new_stream_of_the_same_droplet_is_a_gap_and_no_first_sight() -> None:
    lines = [ScriptedLine(tick(0), RemoteError(FailureKind.LOST, "cut")), ScriptedLine(tick(5))]
    watched = Watched(lambda: lines.pop(0))
    after = watched.until(5).sample
    assert after is not None
    assert after.interval is None
    assert "stream" in after.unavailable["/interval"]
    watched.monitor.stop()


def test_stopping_while_it_connects_leaves_no_line_open() -> None:
    inside, go = threading.Event(), threading.Event()
    line = ScriptedLine()

    def slow() -> ScriptedLine:
        inside.set()
        go.wait(5)
        return line

    watched = Watched(slow)
    assert inside.wait(5)
    watched.monitor.stop(timeout=0)
    go.set()
    watched.until(Phase.CLOSED)
    assert line.closed.is_set()


def test_a_mistake_of_ours_is_told_and_the_droplet_is_tried_again(quick: None) -> None:
    broken = ScriptedLine(tick(0), ValueError("odd \x1b[31m"))
    lines = [broken, ScriptedLine(tick(7))]
    watched = Watched(lambda: lines.pop(0))
    link = watched.until(Phase.WAITING).link
    assert link is not None
    assert "ValueError: odd" in link.words
    assert "test_monitor.py:" in link.words
    assert "\x1b" not in link.words
    assert broken.closed.is_set()
    watched.until(7)
    watched.monitor.stop()
