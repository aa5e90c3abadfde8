"""Dynamic batching as a queue: requests arrive, wait for the instance, and share an execution where they can.

An execution takes ``base + item x batch`` seconds, so that a larger batch serves more requests in a second and each
of them later: what Triton's batcher trades, in the smallest model that shows it.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, field

from console.demo.counters import Counters, Split

_INPUT, _INFER, _OUTPUT = 0.03, 0.94, 0.03
"""Shares of an execution."""
_MOST_WAITING = 400
"""Requests in the queue; more are turned away, which Triton does not count (DESIGN.md 1)."""


@dataclass(frozen=True, slots=True)
class Batcher:
    """How a model is served.

    Attributes:
        base_s: Seconds of an execution whatever its batch; ``item_s`` more for each request in it.
        max_batch: Requests of one execution at most.
        merges: Dynamic batching is on; otherwise each request has an execution of its own.
        delay_s: How long a request waits for company.
        patience_s: A request that waited longer is rejected; None: it waits on.
    """

    base_s: float
    item_s: float
    max_batch: int
    merges: bool = True
    delay_s: float = 0.0
    patience_s: float | None = None


@dataclass(order=True, slots=True)
class _Execution:
    ends: float
    began: float = field(compare=False)
    arrivals: list[float] = field(compare=False)
    fails: bool = field(compare=False)


class Queue:
    """One model with one instance.

    Attributes:
        counters: What it counted since its load.
        busy_s: Seconds of execution that were begun, for ever.
    """

    def __init__(self, batcher: Batcher, chance: random.Random, now: float) -> None:
        self.batcher = batcher
        self.counters = Counters()
        self.busy_s = 0.0
        self._chance = chance
        self._now = now
        self._waiting: deque[float] = deque()
        self._running: list[_Execution] = []
        self._free_at = now
        self._next = now

    @property
    def pending(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    @property
    def mean_batch(self) -> float:
        """Requests of the execution that runs now, or of the next."""
        if self._running:
            return float(len(self._running[0].arrivals))
        return float(max(1, min(len(self._waiting), self.batcher.max_batch)))

    def forget_counters(self) -> None:
        """Count anew, as after a reload."""
        self.counters = Counters()

    def arrive(self, when: float) -> None:
        """One request more."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting.append(max(when, self._now))

    def advance(self, until: float, rate: float, *, slower: float = 1.0, failing: float = 0.0) -> None:
        """Go on to ``until``.

        Args:
            until: By the demo's clock.
            rate: Requests a second that arrive meanwhile.
            slower: What an execution's time is multiplied by.
            failing: Share of the executions that fail.
        """
        self._next = max(self._next, self._now)
        while True:
            start = self._next_start()
            arrival = self._next if rate > 0 else until
            if min(start, arrival) >= until:
                break
            if arrival < start:
                self.arrive(arrival)
                self._now = arrival
                self._next = arrival + self._chance.expovariate(rate)
            else:
                self._now = max(start, self._now)
                self._start(self._now, slower, failing)
        if rate <= 0:
            self._next = until
        # The rate may have changed: what comes next is drawn from the new one.
        elif self._next > until:
            self._next = until + self._chance.expovariate(rate)
        self._now = until
        self._finish(until)

    def _next_start(self) -> float:
        if not self._waiting:
            return float("inf")
        batcher = self.batcher
        size = batcher.max_batch if batcher.merges else 1
        ready = self._waiting[size - 1] if len(self._waiting) >= size else self._waiting[0] + batcher.delay_s
        return max(self._free_at, ready)

    def _start(self, now: float, slower: float, failing: float) -> None:
        batcher = self.batcher
        if batcher.patience_s is not None:
            while self._waiting and now - self._waiting[0] > batcher.patience_s:
                self.counters.fail_one("REJECTED", now - self._waiting.popleft())
        size = min(len(self._waiting), batcher.max_batch if batcher.merges else 1)
        if not size:
            return
        arrivals = [self._waiting.popleft() for _ in range(size)]
        took = (batcher.base_s + batcher.item_s * size) * slower * self._chance.uniform(0.95, 1.05)
        self._free_at = now + took
        self.busy_s += took
        self.counters.last = now
        heapq.heappush(self._running, _Execution(now + took, now, arrivals, self._chance.random() < failing))

    def _finish(self, until: float) -> None:
        while self._running and self._running[0].ends <= until:
            done = heapq.heappop(self._running)
            took = done.ends - done.began
            split = took * _INPUT, took * _INFER, took * _OUTPUT
            self.counters.executions += 1
            self.counters.batches.setdefault(len(done.arrivals), Split()).add(*split)
            for arrival in done.arrivals:
                waited = max(done.began - arrival, 0.0)
                if done.fails:
                    self.counters.fail_one("BACKEND", waited + took)
                else:
                    self.counters.succeed(done.ends, waited, split)
