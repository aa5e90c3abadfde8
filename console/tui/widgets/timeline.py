"""The stretch of time that graphs show, and what is known of a series in each of its columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

from console.domain.telemetry.series import Series, Summary


@dataclass(frozen=True, slots=True)
class Span:
    """``width`` columns of ``step`` seconds each that end at ``end``.

    Columns begin at whole multiples of their step, so what was drawn stays the same as time goes on.
    """

    end: float
    step: float
    width: int

    @property
    def begin(self) -> float:
        """Unix seconds of its left edge."""
        return self.end - self.step * self.width

    def column(self, moment: float) -> int | None:
        """The column that a moment is in; None outside."""
        place = math.floor((moment - self.begin) / self.step)
        return place if 0 <= place < self.width else None

    def moment(self, column: int) -> float:
        """The middle of a column, Unix seconds."""
        return self.begin + (column + 0.5) * self.step


def span(until: float, seconds: float, width: int) -> Span:
    """``seconds`` before ``until`` in ``width`` columns; ``until`` is in the last of them."""
    step = seconds / max(width, 1)
    return Span(math.ceil(until / step) * step, step, max(width, 1))


class Columns:
    """A series over a span, column by column; only the newest are summed up again."""

    def __init__(self) -> None:
        self._series: Series | None = None
        self._step = 0.0
        self._known: dict[int, Summary | None] = {}

    def of(self, series: Series | None, shown: Span) -> list[Summary | None]:
        """What held in each column; None where nothing did."""
        if series is None or series.end is None:
            return [None] * shown.width
        if series is not self._series or shown.step != self._step:
            self._series, self._step, self._known = series, shown.step, {}
        first = round(shown.begin / shown.step)
        wanted = range(first, first + shown.width)
        new = next((number for number in wanted if number not in self._known), wanted.stop)
        if new < wanted.stop:
            found = series.columns(new * shown.step, shown.end, wanted.stop - new)
            self._known.update(enumerate(found, new))
        columns = [self._known[number] for number in wanted]
        # What comes later begins after the newest value's end: columns before that are as they will stay.
        final = math.floor(series.end / shown.step)
        self._known = {number: found for number, found in self._known.items() if first <= number < final}
        return columns
