"""A simulated model's cumulative counters, with Triton's meaning of each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

REMEMBERED = 60.0
"""Seconds over which Triton's latency summaries are computed."""
_REMEMBERED_MOST = 4096


@dataclass(slots=True)
class Split:
    """Executions of one batch size: how many, and seconds of input, inference and output."""

    count: int = 0
    input_s: float = 0.0
    infer_s: float = 0.0
    output_s: float = 0.0

    def add(self, input_s: float, infer_s: float, output_s: float) -> None:
        """One more execution."""
        self.count += 1
        self.input_s += input_s
        self.infer_s += infer_s
        self.output_s += output_s


@dataclass(slots=True)
class Counters:
    """What the statistics API and the metrics tell; seconds where Triton has nanoseconds.

    Attributes:
        success: Requests; ``success_s`` their time from arrival to answer, likewise the other sums.
        failed: By Triton's reason.
        executions: Of the backend, failed ones included.
        inferences: Sum of the batch sizes of what succeeded.
        batches: By batch size.
        last: When the last execution began, by the demo's clock; None before the first.
        durations: When requests ended and how long they took, those of the last minute.
    """

    success: int = 0
    success_s: float = 0.0
    fail_s: float = 0.0
    queue_s: float = 0.0
    input_s: float = 0.0
    infer_s: float = 0.0
    output_s: float = 0.0
    executions: int = 0
    inferences: int = 0
    failed: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("REJECTED", "CANCELED", "BACKEND", "OTHER"), 0)
    )
    batches: dict[int, Split] = field(default_factory=dict)
    last: float | None = None
    durations: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_MOST))

    @property
    def fail(self) -> int:
        """Failed requests."""
        return sum(self.failed.values())

    def succeed(self, ended: float, waited: float, split: tuple[float, float, float]) -> None:
        """One request that was answered.

        Args:
            ended: When, by the demo's clock.
            waited: Seconds in the queue.
            split: Seconds of input, inference and output of its execution.
        """
        took = waited + sum(split)
        self.success += 1
        self.inferences += 1
        self.success_s += took
        self.queue_s += waited
        self.input_s += split[0]
        self.infer_s += split[1]
        self.output_s += split[2]
        self.durations.append((ended, took))

    def fail_one(self, reason: str, took: float) -> None:
        """One request that failed after ``took`` seconds."""
        self.failed[reason] += 1
        self.fail_s += took

    def quantile(self, share: float, now: float) -> float | None:
        """Seconds within which that share of the last minute's requests was answered; None without any."""
        while self.durations and now - self.durations[0][0] > REMEMBERED:
            self.durations.popleft()
        ordered = sorted(took for _, took in self.durations)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None
