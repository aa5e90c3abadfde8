from __future__ import annotations

from typing import Any

import pytest

from console.domain.telemetry import batching, rates, resets
from console.domain.telemetry.counted import NEW
from tests.unit.telemetry_fake import CONFIG, FakeModel, model_of, watch, why


def echo(**config: Any) -> FakeModel:
    return FakeModel({**CONFIG, **config})


def test_a_window_holds_exactly_what_happened_in_it() -> None:
    model = echo()
    model.execute(1)  # before anyone watched
    watched = watch(echo=model)
    for _ in range(3):
        model.execute(*[1] * 8)
    model.execute(1, 2)
    model.execute_failing(1, 1)
    model.fail("REJECTED")
    sample = watched.model(seconds=2.0)
    assert sample.gap is None
    assert (sample.requests, sample.failed, sample.executions, sample.inferences) == (27, 3, 6, 28)
    assert sample.rps == (26 + 3) / 2
    assert sample.inferences_per_s == 27 / 2
    assert sample.executions_per_s == 5 / 2
    assert sample.hit_rate == 100 * (1 - 5 / (26 + 2))
    assert sample.window_batches == {2: 1, 3: 1, 8: 3}
    assert sample.batches == {1: 1, 2: 1, 3: 1, 8: 3}
    assert sample.mean_batch == (8 * 3 + 3 + 2) / 5
    assert sample.fill_percent == 100 * (8 * 3 + 3 + 2) / 5 / 8
    assert sample.error_percent == 100 * 3 / 29
    assert (sample.window_failures.backend, sample.window_failures.rejected) == (2, 1)
    assert (sample.window_failures.cancelled, sample.window_failures.other) == (0, 0)
    assert (sample.queue_ms, sample.compute_input_ms, sample.compute_infer_ms) == (2.0, 1.0, 5.0)
    assert (sample.compute_output_ms, sample.request_ms) == (2.0, 10.0)


def test_the_first_sample_has_counters_and_averages_but_no_window() -> None:
    model = echo()
    model.execute(*[1] * 8)
    watched = watch(echo=model)
    watched = type(watched)(watched.droplet)
    watched.droplet.sent = None
    sample = watched.tick()
    first = model_of(sample)
    assert first.gap == rates.FIRST
    assert first.requests == 8
    assert first.rps is None
    assert why(sample, "rps") == rates.FIRST
    assert first.average["hit_rate"] == 87.5
    assert first.average["mean_batch"] == 8.0
    assert first.average["queue_ms"] == 2.0


def test_idle_is_zero_requests_and_no_hit_rate() -> None:
    sample = (watched := watch()).tick()
    model = model_of(sample)
    assert (model.rps, model.inferences_per_s, model.gap) == (0.0, 0.0, None)
    for figure in ("hit_rate", "mean_batch", "fill_percent", "error_percent", "queue_ms", "compute_infer_ms"):
        assert why(sample, figure) == batching.NO_TRAFFIC
    assert why(sample, "last_inference") == "no inference yet"
    assert why(sample, "average/hit_rate") == "no traffic since the start"
    assert watched.builder.problem is None


def test_cache_hits_wait_but_do_not_compute() -> None:
    model = echo(response_cache=True)
    watched = watch(echo=model)
    model.execute(1, 1)
    for _ in range(8):
        model.hit_cache()
    sample = watched.model()
    assert sample.hit_rate == 50.0
    assert sample.queue_ms == pytest.approx(2 * 2 / 10)
    assert sample.compute_infer_ms == 5.0
    model.hit_cache()
    after = watched.tick()
    assert why(after, "hit_rate") == batching.CACHED
    assert why(after, "compute_infer_ms") == batching.CACHED
    assert model_of(after).rps == 1.0


def test_only_failures_leave_the_times_open() -> None:
    model = echo()
    watched = watch(echo=model)
    model.execute_failing(1)
    sample = watched.tick()
    assert model_of(sample).error_percent == 100.0
    assert model_of(sample).hit_rate == 0.0
    assert why(sample, "queue_ms") == "no request succeeded in this window"


def test_failures_without_metrics_have_no_hit_rate_and_no_split() -> None:
    model = echo()
    model.more = {"failures": None, "metrics_success": None, "metrics_executions": None, "pending": None}
    watched = watch(echo=model)
    watched.droplet.unavailable["/servers/triton/models/echo/1/failures"] = "Triton's metrics are off"
    model.execute(1)
    assert watched.model().hit_rate == 0.0
    model.execute(1)
    model.execute_failing(1)
    sample = watched.tick()
    assert why(sample, "hit_rate") == batching.NO_SPLIT
    assert why(sample, "failures/backend") == "Triton's metrics are off"
    assert model_of(sample).error_percent == 50.0
    assert model_of(sample).average["hit_rate"] is None


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"scheduling": "ensemble"}, batching.ENSEMBLE),
        ({"decoupled": True}, batching.DECOUPLED),
        ({"in_flight_batching": True}, batching.IN_FLIGHT),
        ({"scheduling": "sequence_batching"}, batching.SEQUENCE),
    ],
)
def test_where_a_hit_rate_means_nothing_there_is_none_even_in_a_gap(config: dict[str, Any], reason: str) -> None:
    model = echo(**config)
    watched = watch(echo=model)
    model.execute(1, 1)
    sample = watched.tick()
    assert model_of(sample).hit_rate is None
    assert why(sample, "hit_rate") == reason
    assert why(sample, "average/hit_rate") == reason
    watched.stream = "two"
    watched.droplet.sent = None
    assert why(watched.tick(), "hit_rate") == reason


def test_without_its_configuration_a_model_has_no_hit_rate() -> None:
    model = FakeModel({})
    watched = watch(echo=model)
    place = "/servers/triton/models/echo/1/scheduling"
    watched.droplet.unavailable[place] = "Triton restricts access to its config (403)"
    model.execute(1, 1)
    sample = watched.tick()
    assert why(sample, "hit_rate") == f"{batching.NO_CONFIG}: Triton restricts access to its config (403)"
    assert model_of(sample).mean_batch == 2.0


def test_a_counter_that_goes_back_is_a_gap_and_then_all_is_well() -> None:
    model = echo()
    watched = watch(echo=model)
    for _ in range(10):
        model.execute(1)
    watched.tick()
    model.reload()
    model.execute(1)
    sample = watched.tick()
    assert model_of(sample).gap == "reset: success went back"
    assert why(sample, "rps") == why(sample, "window_failures/backend") == "reset: success went back"
    assert model_of(sample).window_batches == {}
    model.execute(1, 1)
    assert (after := watched.model()).gap is None
    assert (after.rps, after.hit_rate) == (2.0, 50.0)


def test_a_reload_hidden_by_new_traffic_is_seen_by_the_metrics() -> None:
    """Seen on 2.51.0: statistics from 9 to 20 while the metrics go from 9 to 29: a reload and 20 requests."""
    model = echo()
    for _ in range(9):
        model.execute(1)
    watched = watch(echo=model)
    watched.tick()
    model.reload()
    for _ in range(20):
        model.execute(1)
    sample = watched.tick()
    assert model_of(sample).requests == 20
    assert model_of(sample).gap == resets.RELOADED
    model.execute(1, 1)
    assert watched.model().rps == 2.0


def test_a_reload_hidden_by_traffic_without_metrics_is_seen_by_the_batch_sizes() -> None:
    model = echo()
    model.more = dict.fromkeys(("failures", "metrics_success", "metrics_executions"))
    for _ in range(9):
        model.execute(1)
    watched = watch(echo=model)
    model.reload()
    for _ in range(20):
        model.execute(1, 1)
    assert watched.model().gap == "reset: executions at batch size 1 went back"


def test_requests_answered_between_the_two_readings_are_no_reload() -> None:
    model = echo()
    for _ in range(200):
        model.execute(1)
    watched = watch(echo=model)
    for ahead in (140, 100, 145, 103, 150):
        for _ in range(50):
            model.execute(1)
        model.more = {"metrics_success": model.metrics["metrics_success"] + ahead}
        sample = watched.model()
        assert (sample.gap, sample.rps) == (None, 50.0)


def test_the_first_load_of_a_fresh_server_is_no_reload() -> None:
    """Seen on a real one: 12 requests in the statistics, 20 in the metrics a moment later, 0 before."""
    model = echo()
    watched = watch(echo=model)
    for _ in range(12):
        model.execute(1)
    model.more = {"metrics_success": 20, "metrics_executions": 13}
    assert watched.model().rps == 12.0


def test_metrics_that_stand_still_are_no_reload() -> None:
    """--metrics-config counter_latencies=false freezes all of them at 0."""
    model = echo()
    model.more = {"metrics_success": 0, "metrics_executions": 0}
    watched = watch(echo=model)
    for _ in range(5):
        for _ in range(7):
            model.execute(1)
        assert watched.model().rps == 7.0


def test_after_a_reload_the_metrics_that_went_on_spoil_nothing() -> None:
    model = echo()
    for _ in range(1000):
        model.execute(1)
    model.execute_failing(1)
    watched = watch(echo=model)
    model.reload()
    watched.tick()
    for _ in range(5):
        model.execute(1, 1)
        sample = watched.model()
        assert (sample.gap, sample.rps, sample.hit_rate) == (None, 2.0, 50.0)
    assert sample.average["hit_rate"] == 50.0, "the failure before the reload is not the statistics' own"
    model.execute_failing(1)
    after = watched.tick()
    assert why(after, "average/hit_rate") == batching.NO_SPLIT


def test_a_model_that_was_unloaded_and_comes_back_begins_anew() -> None:
    model = echo()
    for _ in range(3):
        model.execute(1)
    watched = watch(echo=model)
    model.state, model.more = "UNAVAILABLE", {"reason": "unloaded"}
    sample = watched.tick()
    gone = model_of(sample)
    assert (gone.state, gone.rps) == ("UNAVAILABLE", None)
    assert why(sample, "rps") == why(sample, "requests") == "the model is UNAVAILABLE: unloaded"
    model.restart()
    model.state, model.more = "READY", {}
    for _ in range(50):
        model.execute(1)
    assert watched.model().gap == NEW
    model.execute(1)
    assert watched.model().rps == 1.0


def test_a_model_that_vanishes_and_comes_back_begins_anew() -> None:
    model = echo()
    watched = watch(echo=model)
    del watched.droplet.models["echo"]
    assert watched.tick().servers[0].models == ()
    model.restart()
    for _ in range(50):
        model.execute(1)
    watched.droplet.models["echo"] = model
    assert watched.model().gap == NEW


def test_another_version_is_another_model() -> None:
    watched = watch()
    line = watched.droplet.line()
    branch = echo()
    branch.execute(1)
    line["doc"]["servers"] = {"triton": {"models": {"echo": {"1": None, "2": branch.branch()}}}}
    sample = watched.builder.feed(line, arrived=0.0, stream="one")
    assert sample is not None
    assert model_of(sample).version == "2"
    assert model_of(sample).gap == NEW


def test_statistics_that_cannot_be_read_for_a_tick_cost_no_request() -> None:
    model = echo()
    watched = watch(echo=model)
    model.execute(1)
    watched.droplet.unavailable["/servers/triton/models"] = "Triton was asked for its statistics: no answer in time"
    kept, model.statistics = model.statistics, {}
    batches, model.batches = model.batches, {}
    sample = watched.tick()
    assert model_of(sample).gap == "Triton was asked for its statistics: no answer in time"
    assert why(sample, "rps") == model_of(sample).gap
    watched.droplet.unavailable.clear()
    model.statistics, model.batches = kept, batches
    model.execute(1)
    assert watched.model().rps == 1.0, "two requests in the two seconds since the counters were last read"


def test_a_batch_at_the_edge_waits_and_the_next_hit_rate_covers_both_windows() -> None:
    model = echo()
    model.execute(1)
    watched = watch(echo=model)
    model.execute(*[1] * 8)
    for _ in range(4):
        model.answer()
    sample = watched.tick()
    edge = model_of(sample)
    assert (edge.rps, edge.hit_rate) == (12.0, None)
    assert why(sample, "hit_rate") == batching.UNSETTLED
    assert edge.mean_batch == 8.0, "the batch sizes are counted with the executions"
    model.count_execution(4)
    after = watched.model()
    assert (after.rps, after.mean_batch) == (0.0, 4.0)
    assert after.hit_rate == 100 * (1 - 2 / 12)


def test_a_window_that_begins_within_a_batch_is_left_behind() -> None:
    model = echo()
    model.answer()
    watched = watch(echo=model)
    model.count_execution(1)
    assert why(watched.tick(), "hit_rate") == batching.UNSETTLED
    model.execute(1, 1)
    assert watched.model().hit_rate == 50.0


def test_counts_that_never_add_up_are_called_by_their_name() -> None:
    """A backend that reports no inferences for what it executes."""
    model = echo()
    watched = watch(echo=model)
    reasons = []
    for _ in range(25):
        model.execute(1, 1, 1)
        model.statistics["inferences"] -= 2
        reasons.append(why(watched.tick(), "hit_rate"))
    assert batching.MISMATCH in reasons
    assert set(reasons) == {batching.UNSETTLED, batching.MISMATCH}


def test_p95_is_triton_s_own_or_none() -> None:
    model = echo()
    model.more = {"p95_us": 12_500}
    watched = watch(echo=model)
    assert watched.model().p95_ms == 12.5
    model.more = {}
    place = "/servers/triton/models/echo/1/p95_us"
    watched.droplet.unavailable[place] = "Triton's latency summaries are off"
    assert why(watched.tick(), "p95_ms") == "Triton's latency summaries are off"
