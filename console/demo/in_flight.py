"""In-flight batching as vLLM does it: the batch changes from token to token, inside the backend."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

from console.demo.counters import Counters, Split

SLOTS = 24
_STEP_S, _STEP_EACH_S = 0.016, 0.0007
"""Seconds of a step, and more of it for each request in it: all get one token."""
_PROMPT, _WANTED = (100, 400), (40, 160)
"""Tokens that a request brings, and wants."""
_CACHE = 12_000
"""Tokens that fit in the KV cache."""
_MOST_WAITING = 200


@dataclass(slots=True)
class _Generation:
    arrived: float
    prompt: int
    wanted: int
    began: float = 0.0
    tokens: int = 0


@dataclass(slots=True)
class Tokens:
    """What vLLM's own metrics count."""

    generated: int = 0
    first_s: float = 0.0
    first_count: int = 0
    between_s: float = 0.0
    between_count: int = 0


class Engine:
    """One language model.

    Attributes:
        counters: Triton's; ``tokens`` the backend's own.
        busy_s: Seconds in which a step ran, for ever.
    """

    def __init__(self, chance: random.Random, now: float) -> None:
        self.counters = Counters()
        self.tokens = Tokens()
        self.busy_s = 0.0
        self._chance = chance
        self._now = now
        self._next = now
        self._waiting: deque[_Generation] = deque()
        self._running: list[_Generation] = []

    @property
    def pending(self) -> int:
        """Requests that wait in Triton: none, the backend takes them all."""
        return 0

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests that wait for a place in it."""
        return len(self._waiting)

    @property
    def cache_ratio(self) -> float:
        """How full the KV cache is, 0 to 1."""
        return min(sum(one.prompt + one.tokens for one in self._running) / _CACHE, 1.0)

    def arrive(self, when: float) -> None:
        """One request more."""
        if len(self._waiting) < _MOST_WAITING:
            prompt, wanted = self._chance.randint(*_PROMPT), self._chance.randint(*_WANTED)
            self._waiting.append(_Generation(when, prompt, wanted))

    def advance(self, until: float, rate: float, *, slower: float = 1.0) -> None:
        """Go on to ``until``; see ``console.demo.batching.Queue.advance``."""
        while self._now < until:
            while rate > 0 and self._next <= self._now:
                self.arrive(self._next)
                self._next += self._chance.expovariate(rate)
            while self._waiting and len(self._running) < SLOTS:
                one = self._waiting.popleft()
                one.began = self._now
                self._running.append(one)
                self.counters.last = self._now
            if not self._running:
                self._now = min(self._next, until) if rate > 0 else until
                continue
            self._step((_STEP_S + _STEP_EACH_S * len(self._running)) * slower)
        self._next = max(self._next, self._now)

    def _step(self, took: float) -> None:
        self._now += took
        self.busy_s += took
        still = []
        for one in self._running:
            one.tokens += 1
            self.tokens.generated += 1
            if one.tokens == 1:
                self.tokens.first_s += self._now - one.arrived
                self.tokens.first_count += 1
            else:
                self.tokens.between_s += took
                self.tokens.between_count += 1
            if one.tokens < one.wanted:
                still.append(one)
            else:
                self._end(one)
        self._running = still

    def _end(self, one: _Generation) -> None:
        took = self._now - one.began
        split = took * 0.01, took * 0.98, took * 0.01
        self.counters.executions += 1
        self.counters.batches.setdefault(1, Split()).add(*split)
        self.counters.succeed(self._now, one.began - one.arrived, split)
