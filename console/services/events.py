"""A bounded queue of events from many droplets to one reader.

A slow reader loses the oldest samples of the droplet that is ahead, never a state of the line, and is told how many
it lost; nobody waits for it and memory stays bounded.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from console.services.link import Event

SAMPLES_PER_DROPLET = 64


class EventQueue:
    """Events in the order they came."""

    def __init__(self, samples_per_droplet: int = SAMPLES_PER_DROPLET) -> None:
        self._events: deque[Event] = deque()
        self._waiting_samples: dict[str, int] = {}
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
                self._make_room(event.droplet)
                self._waiting_samples[event.droplet] = self._waiting_samples.get(event.droplet, 0) + 1
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
            if event.sample is not None:
                self._waiting_samples[event.droplet] -= 1
            return event

    def close(self) -> None:
        """Wake every reader; what is still queued can be read."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _make_room(self, droplet: str) -> None:
        if self._waiting_samples.get(droplet, 0) < self._limit:
            return
        for position, event in enumerate(self._events):
            if event.droplet == droplet and event.sample is not None:
                del self._events[position]
                self._waiting_samples[droplet] -= 1
                self.dropped[droplet] = self.dropped.get(droplet, 0) + 1
                return
