"""A bounded queue of events from many droplets to one reader.

A slow reader loses the oldest samples of the droplet that is ahead, never a state of the line, and is told how many
it lost; nobody waits for it and memory stays bounded.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from console.services.link import Event

SAMPLES_PER_DROPLET = 64
REASONS_PER_DROPLET = 100_000
"""Of all its waiting samples together: a droplet with 2,000 models brings 80,000 with each."""


class EventQueue:
    """Events in the order they came."""

    def __init__(self, samples_per_droplet: int = SAMPLES_PER_DROPLET) -> None:
        self._events: deque[Event] = deque()
        self._waiting: dict[str, _Waiting] = {}
        self._limit = samples_per_droplet
        self._changed = threading.Condition()
        self._closed = False
        self.dropped: dict[str, int] = {}
        """Samples lost so far, by droplet."""

    def put(self, event: Event) -> None:
        """Add an event; never blocks."""
        with self._changed:
            if self._closed:
                return
            if event.sample is not None:
                self._make_room(event.droplet, len(event.sample.unavailable))
            self._events.append(event)
            self._changed.notify()

    def get(self, timeout: float) -> Event | None:
        """The oldest event, or None when none came within ``timeout`` seconds or the queue was closed."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not self._events:
                left = deadline - time.monotonic()
                if left <= 0 or self._closed:
                    return None
                self._changed.wait(left)
            event = self._events.popleft()
            self._count_out(event)
            return event

    def close(self) -> None:
        """Wake every reader; what is still queued can be read."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _make_room(self, droplet: str, reasons: int) -> None:
        waiting = self._waiting.setdefault(droplet, _Waiting())
        while waiting.samples and (
            waiting.samples >= self._limit or waiting.reasons + reasons > REASONS_PER_DROPLET
        ):
            self._drop_oldest(droplet)
        waiting.samples += 1
        waiting.reasons += reasons

    def _drop_oldest(self, droplet: str) -> None:
        for position, event in enumerate(self._events):
            if event.droplet == droplet and event.sample is not None:
                del self._events[position]
                self._count_out(event)
                self.dropped[droplet] = self.dropped.get(droplet, 0) + 1
                return

    def _count_out(self, event: Event) -> None:
        if event.sample is not None:
            waiting = self._waiting[event.droplet]
            waiting.samples -= 1
            waiting.reasons -= len(event.sample.unavailable)


@dataclass(slots=True)
class _Waiting:
    """How much of one droplet waits to be read."""

    samples: int = 0
    reasons: int = 0
