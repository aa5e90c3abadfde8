"""When the next tick is due: on a fixed grid, so that late ticks do not make the following ones late."""

from __future__ import annotations


class Ticks:
    """A grid of moments by the monotonic clock.

    Args:
        start: the first moment, seconds.
        interval: seconds between two.
    """

    def __init__(self, start: float, interval: float) -> None:
        self._start = start
        self._interval = interval
        self._number = 0

    @property
    def due(self) -> float:
        """The next moment."""
        return self._start + self._number * self._interval

    def pass_on(self, now: float) -> int:
        """The due one is dealt with; go on to the first that is still to come.

        Returns:
            How many moments went by in between, which nobody can keep any more.
        """
        reached = int((now - self._start) / self._interval)
        # A moment that has just begun can still be kept.
        following = max(self._number + 1, reached)
        skipped = following - self._number - 1
        self._number = following
        return skipped
