"""The stand-in for Triton: what it is at a moment, and what it answers.

It speaks Triton's statistics, index, config, health and metrics, of a simulated load; it says that it is a stand-in
wherever it says anything of itself.
"""

from __future__ import annotations

import random
from collections.abc import Collection

from console.demo import timeline
from console.demo.batching import Queue
from console.demo.catalogue import IMAGES, MODELS, OCR, RERANKER
from console.demo.in_flight import Engine
from console.demo.timeline import Moment

VERSION = "2.51.0 (stand-in)"


class StandIn:
    """The server.

    Attributes:
        served: The models in memory, by name; empty while the server is dead.
        state: As ``timeline.Moment.server``.
        lives: How often it was started.
        loads: By model, how often it was loaded: the metrics tell loads apart by their seconds.
        forgotten: By model, what its counters were before its last reload: a reload resets the statistics, and not
            the metrics.
    """

    def __init__(self, chance: random.Random, now: float, models: Collection[str] = tuple(MODELS)) -> None:
        self._chance = chance
        self._models = models
        self.served: dict[str, Queue | Engine] = {}
        self.state = "dead"
        self.lives = 0
        self.loads: dict[str, int] = dict.fromkeys(MODELS, 0)
        self.forgotten: dict[str, tuple[int, int, dict[str, int]]] = {}
        self.moment = timeline.at(now)
        self._reloads = 0

    def advance(self, now: float, moment: Moment, *, slower: float) -> None:
        """Go on to ``now``.

        Args:
            now: By the demo's clock.
            moment: The timeline's.
            slower: What executions are slowed down by.
        """
        self.moment = moment
        if moment.server == "dead":
            self.served, self.forgotten = {}, {}
        elif self.state == "dead":
            self.lives += 1
        if moment.server == "running" and self.state != "running":
            for name in self._models:
                if name != OCR:
                    self._load(name, now)
            self._reloads = moment.reloads
        self.state = moment.server
        if self.state == "running":
            self._follow(now, moment)
        for name, one in self.served.items():
            rate = MODELS[name].peak_rate * moment.load
            if isinstance(one, Engine):
                one.advance(now, rate, slower=slower)
            else:
                one.advance(now, rate, slower=slower, failing=moment.failing if name == RERANKER else 0.0)

    def arrive(self, name: str, now: float) -> None:
        """A request of somebody's own."""
        self.served[name].arrive(now)

    def is_ready(self) -> bool:
        """With strict readiness: every model that was not unloaded is ready."""
        return self.state == "running" and (self.moment.ocr == "READY" or self.moment.ocr_reason == "unloaded")

    def _load(self, name: str, now: float) -> None:
        batcher = MODELS[name].batcher
        self.loads[name] += 1
        self.served[name] = Engine(self._chance, now) if batcher is None else Queue(batcher, self._chance, now)

    def _follow(self, now: float, moment: Moment) -> None:
        """Load and unload as the timeline has it."""
        if moment.ocr == "READY" and OCR not in self.served:
            self._load(OCR, now)
        elif moment.ocr != "READY":
            self.served.pop(OCR, None)
        if moment.reloads > self._reloads:
            images = self.served[IMAGES]
            counters = images.counters
            self.forgotten[IMAGES] = counters.success, counters.executions, dict(counters.failed)
            self._load(IMAGES, now)
        self._reloads = moment.reloads
