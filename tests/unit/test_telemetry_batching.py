from __future__ import annotations

from typing import Any

import pytest

from console.domain.telemetry import batching
from console.domain.telemetry.batching import Counted, fill_percent, histogram, hit_rate, mean_batch, no_hit_rate


def counted(**over: Any) -> Counted:
    """8 requests in one execution, unless told otherwise."""
    figures: dict[str, Any] = {
        "requests": 8,
        "failed": 0,
        "executions": 1,
        "inferences": 8,
        "cache_hits": 0,
        "backend_failures": 0,
        "batches": {8: 1},
    }
    return Counted(**{**figures, **over})


def test_nothing_merged_is_0_percent_and_eight_together_87_and_a_half() -> None:
    assert hit_rate(counted(executions=8, batches={1: 8}), 8) == (0.0, None)
    assert hit_rate(counted(), 8) == (87.5, None)


def test_a_client_that_sends_batches_of_its_own_merges_nothing() -> None:
    own_batches = counted(requests=4, executions=4, inferences=32, batches={8: 4})
    assert hit_rate(own_batches, 8) == (0.0, None)
    assert mean_batch(own_batches) == (8.0, None)


def test_cache_hits_are_no_part_of_it() -> None:
    assert hit_rate(counted(requests=108, cache_hits=100), 8) == (87.5, None)
    assert hit_rate(counted(requests=5, cache_hits=5, executions=0, inferences=0, batches={}), 8) == (
        None,
        batching.CACHED,
    )


def test_failures_that_were_executed_count() -> None:
    """Seen on 2.51.0: 4 successes, 111 failures by a backend that raises, 27 executions."""
    seen = counted(requests=4, failed=111, executions=27, inferences=4, backend_failures=111, batches={4: 23, 6: 4})
    rate, reason = hit_rate(seen, 8)
    assert reason is None
    assert rate == pytest.approx(100 * (1 - 27 / 115))


def test_failures_without_metrics_make_it_unknown() -> None:
    assert hit_rate(counted(failed=3, backend_failures=None), 8) == (None, batching.NO_SPLIT)
    assert hit_rate(counted(failed=0, backend_failures=None), 8) == (87.5, None)


def test_no_traffic_is_no_figure() -> None:
    nothing = counted(requests=0, executions=0, inferences=0, batches={})
    assert hit_rate(nothing, 8) == (None, batching.NO_TRAFFIC)
    assert mean_batch(nothing) == (None, batching.NO_TRAFFIC)


@pytest.mark.parametrize(
    ("reading", "ahead"),
    [
        ({"inferences": 16, "executions": 1, "batches": {8: (1, 0)}}, (8, 0)),  # answered, the execution to come
        ({"inferences": 8, "executions": 2, "batches": {8: (1, 0)}}, (0, 1)),  # read between counter and sizes
        ({"inferences": 8, "executions": 1, "batches": {8: (1, 0)}}, (0, 0)),
        ({"inferences": 0, "executions": 0}, (0, 0)),
        ({"inferences": 8, "executions": 1}, None),
    ],
)
def test_a_reading_shows_what_is_just_being_counted(reading: dict[str, Any], ahead: tuple[int, int] | None) -> None:
    assert batching.ahead(reading) == ahead


def test_what_is_just_being_counted_at_the_edge_gives_no_figure() -> None:
    assert hit_rate(counted(), 8, unsettled=1) == (None, batching.UNSETTLED)
    assert hit_rate(counted(requests=0), 8, unsettled=8) == (None, batching.UNSETTLED)


def test_a_batch_at_the_edge_of_a_large_window_does_not_matter() -> None:
    large = counted(requests=4008, executions=1000, inferences=4008, batches={4: 1000})
    rate, _ = hit_rate(large, 8, unsettled=8)
    assert rate is not None
    assert abs(rate - 75) < 0.5


def test_full_batches_at_the_edge_of_a_large_window_are_not_made_fuller_than_full() -> None:
    window = counted(requests=8008, executions=1000, inferences=8008, batches={8: 1000})
    assert hit_rate(window, 8, unsettled=8) == (None, batching.UNSETTLED)


def test_what_cannot_be_is_never_bent_into_range() -> None:
    more = counted(requests=4, executions=8, inferences=8, batches={1: 8})
    assert hit_rate(more, 8) == (None, batching.MISMATCH)
    fuller = counted(requests=17, executions=2, inferences=16, batches={8: 2}, failed=1, backend_failures=0)
    assert hit_rate(fuller, 8) == (None, batching.FAILED_EXECUTED)
    assert hit_rate(counted(requests=4, failed=2, executions=5, backend_failures=0, batches={1: 5}), 8) == (
        None,
        batching.FAILED_EXECUTED,
    )


def test_a_model_that_takes_no_batches_merges_nothing() -> None:
    assert hit_rate(counted(executions=8, batches={1: 8}), 0) == (0.0, None)
    assert fill_percent(1.0, 0) == (None, "the model takes no batches (max_batch_size 0)")


def test_mean_batch_counts_failed_inferences_too_where_the_sizes_are_told() -> None:
    half = counted(requests=8, failed=8, executions=2, inferences=8, backend_failures=8, batches={8: 2})
    assert mean_batch(half) == (8.0, None)
    assert mean_batch(counted(failed=8, batches=None))[0] is None
    assert mean_batch(counted(batches=None)) == (8.0, None)


def test_fill_is_a_share_of_max_batch_size() -> None:
    assert fill_percent(4.0, 8) == (50.0, None)
    assert fill_percent(4.0, None) == (None, None)
    assert fill_percent(9.0, 8)[0] is None


def test_the_histogram_of_a_window_takes_a_missing_size_for_0() -> None:
    assert histogram({1: (5, 0), 8: (3, 0), 4: (2, 0)}, {1: (5, 0), 8: (1, 0)}) == {4: 2, 8: 2}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"scheduling": "ensemble"}, batching.ENSEMBLE),
        ({"scheduling": "sequence_batching"}, batching.SEQUENCE),
        ({"scheduling": "dynamic_batching", "decoupled": True}, batching.DECOUPLED),
        ({"scheduling": "default", "in_flight_batching": True, "decoupled": True}, batching.IN_FLIGHT),
        ({"in_flight_batching": True}, batching.IN_FLIGHT),
        ({}, batching.NO_CONFIG),
        ({"scheduling": "dynamic_batching", "decoupled": False}, None),
        ({"scheduling": "default"}, None),
    ],
)
def test_where_it_means_nothing_it_says_so(config: dict[str, Any], reason: str | None) -> None:
    assert no_hit_rate(config) == reason
