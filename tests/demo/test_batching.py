from __future__ import annotations

import random

import pytest

from console.demo.batching import Batcher, Queue
from console.demo.in_flight import SLOTS, Engine

WHISPER = Batcher(0.02, 0.01, 8, delay_s=0.005)


def served(batcher: Batcher, rate: float, seconds: float = 60.0, failing: float = 0.0) -> Queue:
    queue = Queue(batcher, random.Random(1), 0.0)
    for step in range(1, round(seconds * 10) + 1):
        queue.advance(step / 10, rate, failing=failing)
    return queue


def hit_rate(queue: Queue) -> float:
    counters = queue.counters
    return 1 - counters.executions / (counters.success + counters.failed["BACKEND"])


def test_a_trickle_is_not_merged_and_a_flood_fills_every_batch() -> None:
    assert hit_rate(served(WHISPER, 1.0)) < 0.1
    assert hit_rate(served(WHISPER, 200.0)) == pytest.approx(1 - 1 / 8, abs=0.01)


def test_more_load_merges_more() -> None:
    rates = [hit_rate(served(WHISPER, rate)) for rate in (5.0, 30.0, 60.0)]
    assert rates == sorted(rates)
    assert rates[0] < rates[2] - 0.2


def test_without_dynamic_batching_every_request_has_its_own_execution() -> None:
    counters = served(Batcher(0.01, 0.001, 8, merges=False), 50.0).counters
    assert counters.executions == counters.success > 1000
    assert set(counters.batches) == {1}


def test_the_histogram_holds_every_execution_and_every_request() -> None:
    counters = served(WHISPER, 45.0, failing=0.1).counters
    assert sum(split.count for split in counters.batches.values()) == counters.executions
    requests = sum(size * split.count for size, split in counters.batches.items())
    assert requests == counters.success + counters.failed["BACKEND"]
    assert counters.failed["BACKEND"] > 0


def test_the_load_that_was_asked_for_arrives() -> None:
    counters = served(WHISPER, 40.0, seconds=200).counters
    assert counters.success == pytest.approx(8000, rel=0.05)


def test_who_waits_too_long_is_rejected() -> None:
    counters = served(Batcher(0.05, 0.02, 4, patience_s=0.3), 100.0).counters
    assert counters.failed["REJECTED"] > 100
    assert counters.failed["BACKEND"] == 0


def test_a_queue_never_grows_without_bound() -> None:
    assert served(Batcher(1.0, 0.0, 1), 500.0).pending <= 400


def test_times_add_up() -> None:
    counters = served(WHISPER, 30.0).counters
    parts = counters.queue_s + counters.input_s + counters.infer_s + counters.output_s
    assert counters.success_s == pytest.approx(parts)
    p95 = counters.quantile(0.95, 60.0)
    assert p95 is not None
    assert p95 >= counters.success_s / counters.success


def test_a_language_model_batches_in_flight_up_to_its_slots() -> None:
    engine = Engine(random.Random(2), 0.0)
    most = 0
    for step in range(1, 600):
        engine.advance(step / 10, 30.0)
        most = max(most, engine.running)
    assert most == SLOTS
    assert engine.waiting > 0
    assert engine.counters.success > 100
    assert engine.tokens.generated >= engine.tokens.first_count + engine.tokens.between_count
    assert 0 < engine.cache_ratio <= 1
