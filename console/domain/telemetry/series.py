"""A figure over time, for graphs: a ring buffer of fixed size that keeps gaps as gaps and peaks as peaks."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, nan


@dataclass(frozen=True, slots=True)
class Summary:
    """A stretch of time: its extremes, and its mean weighed by how long each value held."""

    low: float
    high: float
    mean: float


class Series:
    """The last ``capacity`` values of one figure, 24 bytes each as they come, whatever is put in.

    A value stands for the time since the one before it (a rate does so exactly): that stretch comes with it, and
    where stretches do not touch there is a gap.
    """

    __slots__ = ("_capacity", "_ends", "_head", "_size", "_starts", "_values")

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a series holds one value at least, not {capacity}")
        self._capacity = capacity
        self._starts, self._ends, self._values = array("d"), array("d"), array("d")
        self._head = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def end(self) -> float | None:
        """When the newest value ended; None where nothing is there."""
        return self._ends[self._at(self._size - 1)] if self._size else None

    def add(self, end: float, seconds: float, value: float | None) -> bool:
        """Add what held for ``seconds`` until ``end``.

        Args:
            end: Seconds, by a clock that only goes forward.
            seconds: How long the value held; what reaches into the time before the last value is cut off.
            value: None, and what is no number, is a gap.

        Returns:
            False where ``end`` is not after the last one: the clock went back, and nothing was added.
        """
        last = self.end
        if not isfinite(end) or (last is not None and end <= last):
            return False
        start = end - seconds if isfinite(seconds) and seconds >= 0 else end
        if self._size < self._capacity:  # the arrays grow with what is put in: most histories stay short
            slot = self._size
            self._size += 1
            for grown in (self._starts, self._ends, self._values):
                grown.append(nan)
        else:
            slot = self._head
            self._head = (self._head + 1) % self._capacity
        self._starts[slot] = start if last is None else max(start, last)
        self._ends[slot] = end
        self._values[slot] = value if value is not None and isfinite(value) else nan
        return True

    def points(self, since: float | None = None) -> Iterator[tuple[float, float, float | None]]:
        """``(start, end, value)`` in order of time, None in a gap; only those that end after ``since``."""
        for number in range(0 if since is None else self._after(since), self._size):
            at = self._at(number)
            value = self._values[at]
            yield self._starts[at], self._ends[at], value if value == value else None

    def last(self) -> float | None:
        """The newest value; None where that is a gap, or nothing is there."""
        if not self._size:
            return None
        value = self._values[self._at(self._size - 1)]
        return value if value == value else None

    def summary(self, since: float | None = None) -> Summary | None:
        """Of everything that ended after ``since``; None where there is no value."""
        return _summary([(end - start, value) for start, end, value in self.points(since) if value is not None])

    def columns(self, begin: float, end: float, width: int) -> list[Summary | None]:
        """The time from ``begin`` to ``end`` in ``width`` columns of equal length, None where there is no value.

        A column holds the extremes of every value that held within it, however short, so that no peak is lost
        by drawing small; and a value fills every column that it held in, so that none is torn by drawing large.
        """
        if width < 1 or not end > begin:
            return []
        step = (end - begin) / width
        held: list[list[tuple[float, float]]] = [[] for _ in range(width)]
        for start, stop, value in self.points(begin):
            if value is None or start >= end:
                continue
            first = max(0, min(width - 1, int((start - begin) / step)))
            last = max(first, min(width - 1, int((stop - begin) / step)))
            for column in range(first, last + 1):
                left, right = begin + column * step, begin + (column + 1) * step
                share = min(stop, right) - max(start, left)
                if share > 0 or column == first:
                    held[column].append((max(share, 0.0), value))
        return [_summary(values) for values in held]

    def at(self, moment: float) -> float | None:
        """The value that held at a moment; None in a gap."""
        number = (
            self._after(moment) if self._size and moment < self._ends[self._at(self._size - 1)] else self._size - 1
        )
        if number < 0 or not self._starts[self._at(number)] <= moment <= self._ends[self._at(number)]:
            return None
        value = self._values[self._at(number)]
        return value if value == value else None

    def _after(self, moment: float) -> int:
        """The number of the first value that ends after ``moment``; the size where none does."""
        low, high = 0, self._size
        while low < high:
            middle = (low + high) // 2
            if self._ends[self._at(middle)] > moment:
                high = middle
            else:
                low = middle + 1
        return low

    def _at(self, number: int) -> int:
        return (self._head + number) % self._capacity


def _summary(values: list[tuple[float, float]]) -> Summary | None:
    if not values:
        return None
    figures = [value for _, value in values]
    low, high = min(figures), max(figures)
    total = sum(seconds for seconds, _ in values)
    mean = sum(seconds * value for seconds, value in values) / total if total > 0 else sum(figures) / len(figures)
    # A mean of floats may step past the extremes in its last digit.
    return Summary(low, high, min(max(mean, low), high))
