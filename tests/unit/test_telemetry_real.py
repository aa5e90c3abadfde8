"""A real Triton 2.51.0 under loads with known counts, as the real ``telemetry`` script saw it.

``python -m tests.unit.telemetry_capture`` makes the recording anew.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from console.domain.telemetry import batching, resets
from console.domain.telemetry.builder import SampleBuilder
from console.domain.telemetry.counted import NEW, between_samples
from console.domain.telemetry.sample import ModelSample, Sample
from tests.unit.telemetry_fake import difference, model_of, why
from tests.unit.test_telemetry_reasons import assert_explained

DATA = Path(__file__).parents[1] / "data/telemetry/triton.jsonl.gz"


@dataclass(frozen=True)
class Moment:
    name: str
    sent: dict[str, list[int]]
    """By model: requests that ended well and not, as the load source counts them."""
    sample: Sample


def replay() -> list[Moment]:
    builder = SampleBuilder("lab")
    moments: list[Moment] = []
    before: dict[str, Any] = {}
    with gzip.open(DATA, "rt") as file:
        for seq, raw in enumerate(file):
            tick = json.loads(raw)
            document = {"servers": {"triton": tick["server"]}, "unavailable": tick["unavailable"]}
            full = seq % 30 == 0
            doc = document if full else difference(before, document)
            line = {"seq": seq, "time": tick["time"], "mono": tick["mono"], "full": full, "doc": doc}
            sample = builder.feed(line, arrived=tick["time"], stream="one")
            assert sample is not None, builder.problem
            moments.append(Moment(tick["moment"], tick["sent"], sample))
            before = document
    return moments


@pytest.fixture(scope="module")
def moments() -> list[Moment]:
    return replay()


def idle_after(moments: list[Moment], load: str) -> Moment:
    """The last tick of the quiet time after a load; the first word finds it: "echo 2000"."""
    return [moment for moment in moments if moment.name == f"after {load}"][-1]


def idle_before(moments: list[Moment], load: str) -> Moment:
    """The last tick before a load."""
    first = next(number for number, moment in enumerate(moments) if moment.name in (load, f"after {load}"))
    return moments[first - 1]


def windows(moments: list[Moment], load: str, model: str) -> list[tuple[float, ModelSample]]:
    """Interval and model of every tick of a load and the quiet time after it."""
    return [
        (moment.sample.interval or 0.0, model_of(moment.sample, model))
        for moment in moments
        if moment.name in (load, f"after {load}")
    ]


LOADS = [
    ("echo 2000", "echo"),
    ("curve 60", "curve"),
    ("curve 10", "curve"),
    ("flaky 30", "flaky"),
    ("flaky 20", "flaky"),
    ("cached 30", "cached"),
    ("pipeline 20", "pipeline"),
    ("stream 12", "stream"),
    ("responses 24", "responses"),
    ("flaky 12", "flaky"),
]


@pytest.mark.parametrize(("load", "name"), LOADS)
def test_between_two_idle_moments_requests_and_failures_are_the_load_s_own(
    moments: list[Moment], load: str, name: str
) -> None:
    before, after = idle_before(moments, load), idle_after(moments, load)
    sent = [now - then for now, then in zip(after.sent[name], before.sent.get(name, [0, 0]), strict=True)]
    counted = between_samples(model_of(before.sample, name), model_of(after.sample, name))
    assert counted is not None
    assert [counted.requests, counted.failed] == sent
    answered = sum((model.rps or 0.0) * seconds for seconds, model in windows(moments, load, name))
    assert answered == pytest.approx(sum(sent), abs=1e-6), "no request is in no window, and none in two"


@pytest.mark.parametrize(
    ("load", "name"), [pair for pair in LOADS if pair[1] in ("echo", "curve", "flaky", "cached")]
)
def test_the_hit_rate_is_that_of_the_server_s_own_counters(moments: list[Moment], load: str, name: str) -> None:
    before, after = (
        model_of(idle_before(moments, load).sample, name),
        model_of(idle_after(moments, load).sample, name),
    )
    counted = between_samples(before, after)
    assert counted is not None
    assert counted.batches is not None
    assert sum(counted.batches.values()) == counted.executions
    if not counted.failed:
        assert sum(size * count for size, count in counted.batches.items()) == counted.inferences
    executed = counted.requests - counted.cache_hits + (counted.backend_failures or 0)
    assert batching.hit_rate(counted, after.max_batch_size) == (100 * (1 - counted.executions / executed), None)


def test_what_is_seen_under_load_adds_up_to_the_same(moments: list[Moment]) -> None:
    """Each window's hit rate, weighed by its requests, is that of the whole."""
    seen = windows(moments, "echo 2000", "echo")
    total: dict[int, int] = {}
    for _, model in seen:
        for size, count in model.window_batches.items():
            total[size] = total.get(size, 0) + count
    after = model_of(idle_after(moments, "echo 2000").sample, "echo")
    assert total == after.batches
    rates = [model.hit_rate for _, model in seen if model.hit_rate is not None]
    assert rates
    assert all(0 < rate <= 87.5 for rate in rates)


def test_failures_are_split_and_executed_ones_count(moments: list[Moment]) -> None:
    after = idle_after(moments, "flaky 20").sample
    flaky = model_of(after, "flaky")
    assert (flaky.failed, flaky.failures.backend, flaky.failures.rejected) == (20, 20, 0)
    under_load = [model for _, model in windows(moments, "flaky 20", "flaky") if model.rps]
    assert all(model.error_percent == 100.0 for model in under_load)
    assert all(model.hit_rate is not None and model.hit_rate >= 0 for model in under_load)


def test_a_python_backend_s_error_response_is_the_blind_spot_it_is(moments: list[Moment]) -> None:
    before, after = idle_before(moments, "flaky 10"), idle_after(moments, "flaky 10")
    counted = between_samples(model_of(before.sample, "flaky"), model_of(after.sample, "flaky"))
    assert counted is not None
    assert after.sent["flaky"][1] - before.sent["flaky"][1] == 10
    assert (counted.requests, counted.failed) == (10, 0), "2.51.0 counts it as success"


def test_cache_hits_are_told(moments: list[Moment]) -> None:
    cached = model_of(idle_after(moments, "cached 30").sample, "cached")
    assert cached.cache_hits == 27
    assert cached.average["hit_rate"] == 0.0


def test_a_reload_is_one_gap_and_nothing_else(moments: list[Moment]) -> None:
    story = [moment for moment in moments if moment.name in ("reload", "echo 80", "after echo 80")]
    gaps = [model_of(moment.sample).gap for moment in story]
    assert sum(gap is not None for gap in gaps) == 1
    reset = next(moment.sample for moment in story if model_of(moment.sample).gap)
    assert why(reset, "rps").startswith("reset: ")
    assert reset.unavailable["/servers/0/rps"].startswith("echo: reset: ")
    others = [
        model for server in reset.servers for model in server.models if model.name not in ("echo", "pipeline")
    ]
    assert model_of(reset, "pipeline").gap == "reset: success went back", (
        "Triton loads an ensemble anew with its model"
    )
    assert all(model.gap is None for model in others)
    answered = sum((model_of(moment.sample).rps or 0.0) * (moment.sample.interval or 0) for moment in story)
    assert answered <= 80 + 1e-6


def test_nothing_else_ever_was_a_gap(moments: list[Moment]) -> None:
    for moment in moments[1:]:
        for server in moment.sample.servers:
            for model in server.models:
                if model.name not in ("echo", "flaky", "pipeline"):
                    assert model.gap is None, (moment.name, model.name, model.gap)


def test_an_unloaded_model_says_so_and_begins_anew_when_it_is_back(moments: list[Moment]) -> None:
    unloaded = [moment for moment in moments if moment.name == "unloaded"][-1].sample
    flaky = model_of(unloaded, "flaky")
    assert (flaky.state, flaky.requests, flaky.rps) == ("UNAVAILABLE", None, None)
    assert why(unloaded, "rps", "flaky") == "the model is UNAVAILABLE: unloaded"
    back = [model_of(moment.sample, "flaky") for moment in moments if moment.name in ("load", "loaded")]
    assert [model.gap for model in back if model.state == "READY"].count(NEW) == 1
    assert model_of(moments[-1].sample, "flaky").requests == 12


@pytest.mark.parametrize(
    ("name", "reason"),
    [("pipeline", batching.ENSEMBLE), ("stream", batching.DECOUPLED), ("sequence", batching.SEQUENCE)],
)
def test_where_the_hit_rate_means_nothing_it_says_why(moments: list[Moment], name: str, reason: str) -> None:
    for moment in moments:
        assert model_of(moment.sample, name).hit_rate is None
        assert why(moment.sample, "hit_rate", name) == reason


def test_a_decoupled_model_tells_its_responses(moments: list[Moment]) -> None:
    """24 requests of 5 responses, the first after 30 ms, 10 ms between the others."""
    seen = windows(moments, "responses 24", "responses")
    answered = sum((model.responses_per_s or 0.0) * seconds for seconds, model in seen)
    assert answered == pytest.approx(120, abs=1e-6)
    firsts = [model.first_response_ms for _, model in seen if model.first_response_ms is not None]
    between = [model.between_responses_ms for _, model in seen if model.between_responses_ms is not None]
    assert firsts
    assert between
    assert all(29 < first < 60 for first in firsts)
    assert all(9 < gap < 30 for gap in between)


def test_a_backend_without_response_statistics_says_so(moments: list[Moment]) -> None:
    after = idle_after(moments, "stream 12").sample
    for figure in ("responses_per_s", "first_response_ms", "between_responses_ms"):
        assert why(after, figure, "stream") == "Triton has no response statistics for this model"


def test_no_restart_was_seen_and_everything_is_explained(moments: list[Moment]) -> None:
    for moment in moments:
        assert_explained(moment.sample)
        assert not any(reason == resets.RESTARTED for reason in moment.sample.unavailable.values())
