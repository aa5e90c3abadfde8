"""The monitor against lines that behave as told; the real ones are in tests/lab."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, Queue

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.login import backoff
from console.services import monitor
from console.services.link import Event, Phase
from console.services.monitor import Monitor
from console.services.pace import BURST, Pace


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
    def __init__(self, open_line: Callable[[], ScriptedLine], interval: float = 1.0) -> None:
        self.queue: Queue[Event] = Queue()
        self.monitor = Monitor("d", open_line=open_line, emit=self.queue.put, interval=interval)
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


def stalled(watched: Watched) -> str:
    link = watched.until(Phase.STALLED).link
    assert link is not None
    return link.words


class Repeating(ScriptedLine):
    """The same line again and again, as fast or as slowly as told."""

    def __init__(self, first: Mapping[str, object], again: Callable[[int], Mapping[str, object]], pause: float):
        super().__init__(first)
        self._again = again
        self._pause = pause
        self._count = 0

    def read(self, timeout: float) -> Mapping[str, object] | None:
        if not self.steps:
            if self.closed.wait(self._pause):
                raise RemoteError(FailureKind.LOST, "closed")
            self._count += 1
            self.steps.append(self._again(self._count))
        return super().read(timeout)


@pytest.mark.parametrize(
    ("again", "why"),
    [
        (lambda count: {"foo": count}, "seq cannot be used"),
        (lambda count: tick(count), "no newer"),
        (lambda count: {**tick(10**9 + 2 * count), "full": False}, "are lost"),
        (lambda count: {**tick(10**9 + count), "doc": None}, "without a document"),
    ],
)
def test_lines_without_figures_are_no_life(
    again: Callable[[int], Mapping[str, object]], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "QUIET_S", 0.1)
    monkeypatch.setattr(monitor, "LOST_S", 0.3)
    useless = Repeating(tick(10**9), again, 0.05)
    lines = [useless, ScriptedLine(tick(0))]
    watched = Watched(lambda: lines.pop(0), interval=0.1)
    watched.until(Phase.LIVE)
    words = stalled(watched)
    assert words.startswith("no figures for")
    assert why in words
    waiting = watched.until(Phase.WAITING).link
    assert waiting is not None
    assert why in waiting.words
    assert useless.closed.is_set()
    watched.until(Phase.LIVE)
    watched.monitor.stop()


def test_a_hole_is_told_and_over_with_the_next_whole_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "QUIET_S", 0.05)
    patches = Repeating(tick(0), lambda count: {**tick(count + 5), "full": count == 8}, 0.05)
    watched = Watched(lambda: patches, interval=0.1)
    watched.until(Phase.LIVE)
    assert "the lines before 6 are lost" in stalled(watched)
    watched.until(13)
    watched.until(Phase.LIVE)
    watched.monitor.stop()


def test_a_flood_is_cut_off_and_the_droplet_left_alone_for_a_while() -> None:
    flood = Repeating(tick(0), lambda count: tick(count), 0.0)
    watched = Watched(lambda: flood)
    waiting = watched.until(Phase.WAITING).link
    assert waiting is not None
    assert waiting.error is not None
    assert waiting.error.kind is FailureKind.SCRIPT_FAILED
    assert waiting.retry_at is not None
    assert waiting.retry_at - waiting.since >= monitor.FLOODED_S - 1
    assert flood._count < 2 * BURST
    watched.monitor.stop()


def test_what_piled_up_while_nothing_was_read_is_no_flood() -> None:
    pace = Pace(1.0, 0.0)
    assert all(pace.allows(float(second)) for second in range(1, 100))
    assert all(pace.allows(3700.0) for _ in range(3600 + BURST))
    assert not all(pace.allows(3700.0) for _ in range(4 * 3600))


def test_a_droplet_whose_lines_are_hard_work_gets_half_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    # 4,000 models a line, of which 2,000 are kept.
    models = {f"m{number}": {"1": {"state": "READY", "success": 1}} for number in range(4_000)}
    hard = Repeating(tick(0), lambda count: {**tick(count), "doc": {"servers": {"t": {"models": models}}}}, 0.0)
    monkeypatch.setattr(monitor, "HEAVY_S", 0.01)
    spent: list[float] = []
    read = hard.read

    def timed(timeout: float) -> Mapping[str, object] | None:
        spent.append(time.thread_time())
        return read(timeout)

    monkeypatch.setattr(hard, "read", timed)
    began = time.monotonic()
    watched = Watched(lambda: hard)
    watched.until(10)
    took = time.monotonic() - began
    watched.monitor.stop()
    assert spent[10] - spent[0] < 0.75 * took
