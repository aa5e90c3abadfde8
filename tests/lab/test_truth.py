"""What the samples of a real droplet with a real Triton say, against the load's and the server's own figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.telemetry.sample import ModelSample, Sample
from tests.lab import nvml
from tests.lab.machine import Machine
from tests.lab.nvml import machines as gpus
from tests.lab.nvml.scenario import DRAM_BW_UTIL
from tests.lab.triton.load import Result, closed_loop, infer_target, open_loop
from tests.lab.triton.options import Options
from tests.lab.triton.unit import TritonUnit, install
from tests.lab.watched import Watched, model

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

RAISE, ERROR = 1, 2
"""What the lab's `flaky` model does with such an input."""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with Machine("bookworm") as droplet:
        yield droplet


@pytest.fixture(scope="module")
def triton(machine: Machine) -> TritonUnit:
    nvml.install(machine, gpus.ONE_H100)
    # The server's own DCGM would wait for ever for the stub.
    options = Options(load=("curve", "echo", "flaky", "stream"), extra=("--allow-gpu-metrics=false",))
    unit = install(machine, options)
    unit.start()
    return unit


@pytest.fixture
def watched(machine: Machine, triton: TritonUnit, tmp_path: Path) -> Iterator[Watched]:
    with Watched(machine, tmp_path) as watching:
        watching.sample(lambda sample: sample.interval is not None)
        yield watching


Send = Callable[..., Result]


@pytest.fixture
def send(triton: TritonUnit) -> Send:
    def run(name: str, requests: int, concurrency: int, value: int = 0) -> Result:
        api = triton.api
        return closed_loop(infer_target(api.address, api.http, name, [value]), requests, concurrency)

    return run


def settled(watched: Watched, name: str) -> ModelSample:
    """The model once a whole tick passed in which nothing happened."""
    found = watched.sample(lambda sample: _idle(sample, name))
    one = model(found, name)
    assert one is not None
    return one


def _idle(sample: Sample, name: str) -> bool:
    one = model(sample, name)
    return one is not None and one.rps == 0 and one.executions_per_s == 0


def own_counts(triton: TritonUnit, name: str) -> tuple[int, int, int, int, dict[int, int]]:
    """The server's own: requests, failed, executions, inferences, executions by batch size."""
    (stats,) = triton.api.statistics(name)
    by_size = {one["batch_size"]: one["compute_infer"]["count"] for one in stats["batch_stats"]}
    ended = stats["inference_stats"]
    return (
        ended["success"]["count"],
        ended["fail"]["count"],
        stats["execution_count"],
        stats["inference_count"],
        by_size,
    )


def test_between_two_idle_moments_every_count_is_the_loads_and_the_servers_own(
    watched: Watched, triton: TritonUnit, send: Send
) -> None:
    before = settled(watched, "echo")
    result = send("echo", requests=400, concurrency=8)
    after = settled(watched, "echo")
    assert result.succeeded == 400
    assert after.requests is not None
    assert before.requests is not None
    assert after.requests - before.requests == 400
    requests, failed, executions, inferences, batches = own_counts(triton, "echo")
    assert (after.requests, after.failed, after.executions, after.inferences) == (
        requests, failed, executions, inferences,
    )  # fmt: skip
    assert dict(after.batches) == batches


def test_the_windows_hold_every_request_and_their_hit_rate_is_what_was_merged(
    watched: Watched, triton: TritonUnit, send: Send
) -> None:
    before = settled(watched, "curve")
    first = len(watched.samples)
    result = send("curve", requests=600, concurrency=8)
    after = settled(watched, "curve")
    windows = [one for sample in watched.samples[first:] if (one := model(sample, "curve"))]
    merged: dict[int, int] = {}
    for window in windows:
        for size, count in window.window_batches.items():
            merged[size] = merged.get(size, 0) + count
    assert None not in (after.executions, before.executions, after.requests, before.requests)
    executions = (after.executions or 0) - (before.executions or 0)
    assert {size: count for size, count in merged.items() if count} == {
        size: count - before.batches.get(size, 0)
        for size, count in after.batches.items()
        if count > before.batches.get(size, 0)
    }
    assert sum(merged.values()) == executions
    assert result.succeeded == 600
    # Eight clients that always wait together: most requests ride along.
    rates = [window.hit_rate for window in windows if window.hit_rate is not None]
    assert rates
    assert all(0 <= rate <= 100 for rate in rates)
    own = 100 * (1 - executions / 600)
    busiest = max(rates)
    assert own > 50
    assert busiest == pytest.approx(own, abs=30)


def test_raised_failures_are_counted_and_leave_the_hit_rate_true(
    watched: Watched, triton: TritonUnit, send: Send
) -> None:
    before = settled(watched, "flaky")
    result = send("flaky", requests=120, concurrency=4, value=RAISE)
    after = settled(watched, "flaky")
    assert sum(result.failed.values()) == 120
    assert (after.failed or 0) - (before.failed or 0) == 120
    assert (after.failures.backend or 0) - (before.failures.backend or 0) == 120
    assert after.failed == own_counts(triton, "flaky")[1]
    rates = [
        one.hit_rate for sample in watched.samples if (one := model(sample, "flaky")) and one.hit_rate is not None
    ]
    assert all(0 <= rate <= 100 for rate in rates)
    errors = [one.error_percent for sample in watched.samples if (one := model(sample, "flaky"))]
    assert 100.0 in errors


def test_an_error_response_is_the_blind_spot_it_is(watched: Watched, send: Send) -> None:
    """Triton 2.51.0 counts it as a success: the clients saw 40 errors."""
    before = settled(watched, "flaky")
    result = send("flaky", requests=40, concurrency=1, value=ERROR)
    after = settled(watched, "flaky")
    assert sum(result.failed.values()) == 40
    assert after.failed == before.failed
    assert (after.requests or 0) - (before.requests or 0) == 40


def test_rps_while_it_runs_is_the_loads(watched: Watched, triton: TritonUnit) -> None:
    api = triton.api
    first = len(watched.samples)
    result = open_loop(infer_target(api.address, api.http, "echo"), rate=150, seconds=12, seed=7)
    assert result.skipped == 0
    assert result.succeeded == result.sent
    # Whole windows within the load, by this side's clock; the counts' own clock is the droplet's.
    inside = [
        sample
        for sample in watched.samples[first:]
        if result.started + 1 <= sample.time - 1 < sample.time < result.ended
    ]
    pairs = [(one, sample.interval) for sample in inside if (one := model(sample, "echo")) and sample.interval]
    assert len(pairs) >= 8
    assert all(one.rps is not None for one, _ in pairs)
    seen = sum((one.rps or 0) * seconds for one, seconds in pairs) / sum(seconds for _, seconds in pairs)
    start, end = inside[0], inside[-1]
    total = (model(end, "echo").requests or 0) - (model(start, "echo").requests or 0)  # type: ignore[union-attr]
    from_counts = total / (end.time - start.time)
    assert seen == pytest.approx(150, rel=0.10)  # Poisson arrivals over ten seconds
    assert seen == pytest.approx(from_counts, rel=0.01)


def test_a_reload_is_a_gap_and_nothing_else(watched: Watched, triton: TritonUnit, send: Send) -> None:
    send("echo", requests=50, concurrency=4)
    settled(watched, "echo")
    first = len(watched.samples)
    config = triton.api.config("echo")
    triton.api.load("echo", config)  # an unchanged file would not be loaded again
    send("echo", requests=80, concurrency=4)
    watched.sample(lambda sample: (one := model(sample, "echo")) and (one.gap or "").startswith("reset"), since=0.0)
    after = settled(watched, "echo")
    assert after.requests == own_counts(triton, "echo")[0] == 80
    for sample in watched.samples[first:]:
        one = model(sample, "echo")
        assert one is not None
        if one.gap:
            assert one.rps is None
            assert one.hit_rate is None
        else:
            assert (one.rps or 0) <= 80 / (sample.interval or 1.0) * 1.05
            assert one.hit_rate is None or 0 <= one.hit_rate <= 100


@pytest.mark.parametrize("percent", [0.0, 62.5, 87.25])
def test_dram_is_the_devices_own(machine: Machine, watched: Watched, percent: float) -> None:
    gpu = gpus.h100()
    changed = nvml.Scenario((replace(gpu, gpm={**(gpu.gpm or {}), DRAM_BW_UTIL: percent}),))
    nvml.set_scenario(machine, changed)
    found = watched.sample(lambda sample: sample.gpus and sample.gpus[0].dram_percent == percent)
    (seen,) = found.gpus
    peak = 2619 * 2 * 5120 / 8 / 1000
    assert seen.dram_source == "gpm"
    assert seen.dram_peak_gb_s == pytest.approx(peak, rel=1e-12)
    assert seen.dram_gb_s == pytest.approx(percent / 100 * peak, rel=1e-12)


def test_a_decoupled_model_has_no_hit_rate_and_says_why(watched: Watched) -> None:
    sample = watched.sample(lambda sample: model(sample, "stream"))
    one = model(sample, "stream")
    assert one is not None
    assert one.decoupled is True
    assert one.hit_rate is None
    place = [found.name for found in sample.servers[0].models].index("stream")
    assert "decoupled" in sample.unavailable[f"/servers/0/models/{place}/hit_rate"]


def test_two_droplets_clocks_do_not_matter(machine: Machine, watched: Watched) -> None:
    """Samples carry this side's clock; how far the droplet's is off is said."""
    sample = watched.sample(lambda sample: sample.clock_skew_s is not None)
    assert sample.time == pytest.approx(time.time(), abs=5)
    assert abs(sample.clock_skew_s or 0) < 2
