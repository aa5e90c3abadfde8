"""Whatever happens to a server, no figure is negative, beyond its bounds, or says what did not happen."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from console.domain.telemetry import batching
from console.domain.telemetry.sample import ModelSample, Sample
from tests.unit.telemetry_fake import CONFIG, FakeModel, Watched, model_of, watch

PERCENTS = ("hit_rate", "fill_percent", "error_percent")
NOT_NEGATIVE = (
    "rps",
    "inferences_per_s",
    "executions_per_s",
    "mean_batch",
    "queue_ms",
    "compute_infer_ms",
    "request_ms",
)


@dataclass
class Load:
    """Executions that are counted piece by piece, and everything that really happened since the last reset."""

    model: FakeModel
    max_batch_size: int
    open: list[list[int]] = field(default_factory=list)
    """Executions of which some requests are answered: those yet to come, the size of all of it last."""
    happened: list[tuple[int, int]] = field(default_factory=list)
    """(requests, executions) of the ticks since."""

    def begin(self, requests: list[int]) -> None:
        self.open.append([*requests, sum(requests)])

    def step(self, which: int) -> None:
        """Count one more piece of an execution: a request's answer, or at last the execution itself."""
        if not self.open:
            return
        execution = self.open[which % len(self.open)]
        if len(execution) > 1:
            self.model.answer(execution.pop(0))
        else:
            self.model.count_execution(execution[0])
            self.open.remove(execution)

    def settle(self) -> None:
        while self.open:
            self.step(0)


def assert_sound(model: ModelSample, max_batch_size: int) -> None:
    for name in PERCENTS:
        value = getattr(model, name)
        assert value is None or 0 <= value <= 100, (name, value)
    for name in NOT_NEGATIVE:
        value = getattr(model, name)
        assert value is None or value >= 0, (name, value)
    assert all(count > 0 for count in model.window_batches.values())
    if model.hit_rate is not None:
        assert model.hit_rate <= 100 * (1 - 1 / max(1, max_batch_size)) + 1e-9
    for value in model.average.values():
        assert value is None or value >= 0
    if model.gap is not None:
        assert all(getattr(model, name) is None for name in (*PERCENTS, *NOT_NEGATIVE))


STEPS = st.one_of(
    st.tuples(st.just("begin"), st.lists(st.integers(1, 2), min_size=1, max_size=4)),
    st.tuples(st.just("step"), st.integers(0, 3)),
    st.tuples(st.just("step"), st.integers(0, 3)),
    st.tuples(st.just("tick"), st.floats(0.1, 3)),
    st.tuples(st.just("settle"), st.none()),
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_hit_rates_are_exact_however_the_counts_come_in(steps: list[tuple[str, Any]]) -> None:
    """Each is the truth of a stretch that begins and ends between executions, or right to half a point."""
    model = FakeModel({**CONFIG, "max_batch_size": 8})
    load = Load(model, 8)
    watched = watch(echo=model)
    settled = [(0, 0, 0)]  # requests, executions, tick at which everything counted belonged together
    ticks = 0
    for what, value in [*steps, ("settle", None), ("tick", 1.0), ("tick", 1.0)]:
        if what == "begin":
            load.begin(value)
        elif what == "step":
            load.step(value)
        elif what == "settle":
            load.settle()
        else:
            ticks += 1
            sample = watched.model(seconds=value)
            assert sample.gap is None
            assert_sound(sample, 8)
            partly = any(begun(execution) for execution in load.open)
            now = (model.statistics["success"], model.statistics["executions"], ticks)
            if sample.hit_rate is not None:
                possible = [100 * (1 - (now[1] - e) / (now[0] - s)) for s, e, _ in settled if now[0] > s]
                assert any(abs(sample.hit_rate - rate) <= 0.5 for rate in possible), (sample.hit_rate, possible)
            if not partly:
                settled.append(now)


def begun(execution: list[int]) -> bool:
    """Whether some requests of an open execution are counted already."""
    return sum(execution[:-1]) < execution[-1]


@settings(deadline=None)
@given(st.lists(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), max_size=6), min_size=1, max_size=8))
def test_between_idle_moments_everything_is_exact(windows: list[list[list[int]]]) -> None:
    model = FakeModel({**CONFIG, "max_batch_size": 16})
    watched = watch(echo=model)
    for executions in windows:
        for requests in executions:
            model.execute(*requests)
        sample = watched.model()
        requests_ = sum(len(requests) for requests in executions)
        sizes = [sum(requests) for requests in executions]
        assert sample.rps == requests_
        assert sample.window_batches == {size: sizes.count(size) for size in sorted(set(sizes))}
        if executions:
            assert sample.hit_rate == 100 * (1 - len(executions) / requests_)
            assert sample.mean_batch == sum(sizes) / len(sizes)
        else:
            assert (sample.hit_rate, sample.mean_batch) == (None, None)


RELOADS = st.one_of(
    st.tuples(st.just("execute"), st.lists(st.integers(1, 4), min_size=1, max_size=4)),
    st.tuples(st.just("reload"), st.none()),
    st.tuples(st.just("tick"), st.sampled_from([0.5, 1.0, 2.0])),
)


@settings(deadline=None)
@given(st.lists(RELOADS, max_size=60))
def test_a_reload_is_a_gap_and_every_other_window_holds_all_its_requests(story: list[tuple[str, Any]]) -> None:
    model = FakeModel()
    watched = watch(echo=model)
    done, counted_before = 0, 0
    for what, value in [*story, ("tick", 1.0)]:
        done += happen(watched, model, what, value)
        if what == "tick":
            now = watched.model(seconds=value)
            # Where nothing had been counted, a reload within one tick leaves no trace.
            if now.gap is None and counted_before:
                assert now.rps == done / value
            done, counted_before = 0, now.requests or 0


EVENTS = st.one_of(
    st.tuples(st.just("execute"), st.lists(st.integers(1, 4), min_size=1, max_size=4)),
    st.tuples(st.just("raise"), st.lists(st.integers(1, 4), min_size=1, max_size=4)),
    st.tuples(st.just("reject"), st.none()),
    st.tuples(st.just("cache"), st.none()),
    st.tuples(st.just("reload"), st.none()),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("unload"), st.none()),
    st.tuples(st.just("load"), st.none()),
    st.tuples(st.just("tick"), st.floats(0.001, 100)),
    st.tuples(st.just("tick"), st.just(1.0)),
    st.tuples(st.just("missed"), st.integers(1, 5)),
    st.tuples(st.just("lost"), st.integers(1, 3)),
    st.tuples(st.just("duplicate"), st.none()),
    st.tuples(st.just("stream"), st.none()),
    st.tuples(st.just("boot"), st.none()),
    st.tuples(st.just("clock"), st.floats(-1e6, 1e6)),
    st.tuples(st.just("back"), st.floats(0, 1e3)),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(EVENTS, max_size=40))
def test_no_story_makes_a_negative_a_spike_or_more_requests_than_there_were(story: list[tuple[str, Any]]) -> None:
    model = FakeModel()
    watched = watch(echo=model)
    done = 0  # requests since the last sample that the builder gave
    for what, value in [*story, ("tick", 1.0)]:
        done += happen(watched, model, what, value)
        if what not in ("tick", "missed", "lost"):
            continue
        seconds = value if what == "tick" else 1.0
        sample = feed(watched, what, value, seconds)
        if sample is None:
            continue
        now = model_of(sample)
        assert_sound(now, 8)
        assert_host_sound(sample)
        if now.rps is not None:
            assert sample.interval is not None
            if sample.interval >= 0.05:
                # What a gap left out belongs to no window; what is told never exceeds what happened.
                assert now.rps * sample.interval <= done + 1e-6
        if sample.interval is None or sample.interval >= 0.05:
            done = 0
        if what == "missed":
            assert sample.missed >= value


def happen(watched: Watched, model: FakeModel, what: str, value: Any) -> int:
    """Let one event happen; the requests it makes."""
    droplet = watched.droplet
    if what in ("execute", "raise", "reject", "cache") and model.state != "READY":
        return 0
    if what == "execute":
        model.execute(*value)
        return len(value)
    if what == "raise":
        model.execute_failing(*value)
        return len(value)
    if what == "reject":
        model.fail("REJECTED")
        return 1
    if what == "cache":
        model.hit_cache()
        return 1
    if what == "reload":
        model.reload()
    elif what == "restart":
        model.restart()
        droplet.server["pid"] += 1
    elif what == "unload":
        model.state = "UNAVAILABLE"
        model.restart()
    elif what == "load":
        model.state = "READY"
    elif what == "stream":
        watched.stream += "'"
        droplet.sent, droplet.seq = None, -1
    elif what == "boot":
        model.restart()
        droplet.host["boot_id"] += "'"
        droplet.mono, droplet.sent, droplet.seq = 0.0, None, -1
        watched.stream += "b"
    elif what == "clock":
        droplet.time = max(0.0, droplet.time + value)
    elif what == "back":
        droplet.mono = max(0.0, droplet.mono - value)
    elif what == "duplicate":
        watched.builder.feed({"seq": 0, "time": 0, "mono": 0, "full": True, "doc": {}}, arrived=0.0, stream="other")
        watched.stream += "d"
        droplet.sent, droplet.seq = None, -1
    return 0


def feed(watched: Watched, what: str, value: Any, seconds: float) -> Sample | None:
    if what == "lost":
        for _ in range(value):
            watched.droplet.line()
    more = {"missed": value} if what == "missed" else {}
    line = watched.droplet.line(seconds, **more)
    return watched.builder.feed(line, arrived=watched.droplet.time, stream=watched.stream)


def assert_host_sound(sample: Sample) -> None:
    for value in dataclasses.asdict(sample.host).values():
        assert not isinstance(value, float) or value >= 0
    for server in sample.servers:
        assert server.rps is None or server.rps >= 0


def test_the_words_of_the_design_are_the_code_s() -> None:
    counted = batching.Counted(8, 0, 1, 8, 0, 0, {8: 1})
    assert batching.hit_rate(counted, 8) == (87.5, None)
