"""A time limit that stands still while a person is being asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Deadline:
    """Counts down from ``seconds``. Not for several threads, but for ``expire``."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._expired = False
        self.seconds = seconds

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return 0.0 if self._expired else max(0.0, self._end - self._clock())

    def at_most(self, seconds: float) -> float:
        """Seconds left, but no more than ``seconds``."""
        return min(seconds, self.remaining())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.remaining() == 0.0

    def expire(self) -> None:
        """Leave no time; may be called from any thread."""
        self._expired = True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the time spent inside."""
        began = self._clock()
        try:
            yield
        finally:
            self._end += self._clock() - began
