"""A figure over time as lines of cells: filled columns, a scale, thresholds, gaps that stay gaps, and marks.

Few colours and runs of one style: a colour for each cell would cost a terminal ten times the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from console.tui.theme import Look
from console.tui.widgets.strip import cell
from console.tui.widgets.timeline import Span

EIGHTHS = 8
"""Steps of filling within a cell."""
_ROUND_TOPS = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 10.0)
_COMES_DOWN = 0.4
"""A scale comes down once this share of it would do: it does not jump about."""
_ROUND_TIMES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200)


@dataclass(frozen=True, slots=True)
class Column:
    """What is drawn in a column: filled up to ``inner`` in one colour, from there to ``outer`` in another."""

    inner: float
    outer: float


@dataclass(frozen=True, slots=True)
class Threshold:
    """A line across; what rises above it is drawn in ``role``, where one is given."""

    value: float
    role: str | None = None


def scale(largest: float, before: float = 0.0, least: float = 1.0) -> float:
    """The top of a scale that starts at 0: a round number, the one from before while that does.

    Args:
        largest: What must fit.
        before: The top until now; 0 for none.
        least: The smallest top there is.
    """
    wanted = max(largest, least)
    if before >= wanted and wanted > before * _COMES_DOWN:
        return before
    power = 1.0
    while wanted > power * 10:
        power *= 10
    while wanted <= power / 10:
        power /= 10
    return next(power * top for top in _ROUND_TOPS if wanted <= power * top * (1 + 1e-9))


def area(
    columns: Sequence[Column | None],
    top: float,
    height: int,
    look: Look,
    *,
    roles: tuple[str, str] = ("graph", "graph2"),
    threshold: Threshold | None = None,
) -> list[list[Segment]]:
    """The columns as ``height`` lines, the highest first.

    Args:
        columns: From left to right; None is a gap.
        top: The value at the upper edge.
        height: Lines.
        look: Colours and signs.
        roles: Of the lower and the upper part of a column.
        threshold: A line across.
    """
    painter = _Painter(look, roles, threshold, top, height)
    return [painter.line(columns, row) for row in range(height - 1, -1, -1)]


_GROUNDS = {"dark": (18, 22, 28), "light": (247, 248, 250)}
_CALM = 0.72
"""A filled area is not as bright as a line of text in the same colour."""


@cache
def _mixed(colour: Color, ground: tuple[int, int, int]) -> Color:
    own = colour.get_truecolor()
    return Color.from_rgb(*(low + (high - low) * _CALM for high, low in zip(own, ground, strict=True)))


def calmer(style: Style, look: Look) -> Style:
    """A role's style for filling areas; the terminal's own 16 colours stay as they are."""
    ground = _GROUNDS.get(look.name)
    if ground is None or style.color is None:
        return Style(color=style.color)
    return Style(color=_mixed(style.color, ground))


class _Painter:
    def __init__(
        self, look: Look, roles: tuple[str, str], threshold: Threshold | None, top: float, height: int
    ) -> None:
        self._signs = look.symbols
        self._levels = look.symbols.levels
        self._inner, self._outer = calmer(look[roles[0]], look), calmer(look[roles[1]], look)
        # Two colours in one cell: the filling in front, what is above it behind.
        self._both = Style(color=self._inner.color, bgcolor=self._outer.color)
        self._axis, self._dim = look["line"], look["dim"]
        self._scale = height * EIGHTHS / top if top > 0 else 0.0
        self._limit = threshold.value if threshold is not None and 0 < threshold.value < top else None
        self._over = calmer(look[threshold.role], look) if threshold is not None and threshold.role else None

    def line(self, columns: Sequence[Column | None], row: int) -> list[Segment]:
        base = row * EIGHTHS
        rule = self._limit is not None and base <= self._limit * self._scale < base + EIGHTHS
        runs: list[tuple[str, Style]] = []
        for column in columns:
            sign, style = self._cell(column, base, rule=rule)
            if runs and runs[-1][1] is style:
                runs[-1] = (runs[-1][0] + sign, style)
            else:
                runs.append((sign, style))
        return [Segment(text, style) for text, style in runs]

    def _cell(self, column: Column | None, base: int, *, rule: bool) -> tuple[str, Style]:
        if column is None:
            return (self._signs.gap, self._axis) if base == 0 else (" ", self._axis)
        inner = min(max(self._eighths(column.inner) - base, 0), EIGHTHS)
        outer = min(max(self._eighths(column.outer) - base, 0), EIGHTHS)
        lower = self._inner
        if self._over is not None and self._limit is not None and column.inner > self._limit:
            lower = self._over
        if inner == EIGHTHS or outer <= inner:
            filled, style = inner, lower
        elif inner == 0:
            filled, style = outer, self._outer
        elif outer == EIGHTHS and lower is self._inner and self._signs.unicode:
            return self._levels[inner], self._both
        else:
            filled, style = max(inner, 1), lower
        if filled:
            return self._levels[filled], style
        if base == 0:  # a value of nothing is seen, a gap is not
            return self._levels[1], self._axis
        return (self._signs.across, self._axis) if rule else (" ", self._axis)

    def _eighths(self, value: float) -> int:
        """Filled eighths of all the height; what is there at all is seen."""
        found = value * self._scale
        return max(round(found), 1) if found > 0 else 0


def axis(shown: Span, until: float, look: Look, marks: Iterable[tuple[float, str]] = ()) -> list[Segment]:
    """The time axis: how long ago, "now" at the right, and a sign where something happened.

    Args:
        shown: The time.
        until: What "now" means, Unix seconds.
        look: Colours and signs.
        marks: Moments with the role that each is drawn in; the last of a column wins.
    """
    signs, rule = look.symbols, look["line"]
    cells: list[tuple[str, Style]] = [(signs.across, rule)] * shown.width
    for column, text in _labels(shown, until):
        for place, sign in enumerate(text, column):
            if 0 <= place < shown.width:
                cells[place] = (sign, look["dim"])
    for moment, role in marks:
        marked = shown.column(moment)
        if marked is not None:
            cells[marked] = (signs.event, look[role])
    return _runs(cells)


def _labels(shown: Span, until: float) -> list[tuple[int, str]]:
    """Where times are written: the left edge, and round ones with room between them."""
    seconds = shown.step * shown.width
    room = max(shown.width // 12, 1)
    step = next((one for one in _ROUND_TIMES if seconds / one <= room), seconds)
    found: list[tuple[int, str]] = []
    free = shown.width
    ago = step
    while ago < seconds * 0.97:
        text = _ago(ago)
        at = shown.width - 1 - round(ago / shown.step) - len(text) // 2
        if at >= 0 and at + len(text) < free:
            found.append((at, text))
            free = at - 1
        ago += step
    return found


def _ago(seconds: float) -> str:
    if seconds < 60:
        return f"-{seconds:.0f}s"
    minutes, left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"-{minutes}m{left:02d}" if left else f"-{minutes}m"
    hours, minutes = divmod(minutes, 60)
    return f"-{hours}h{minutes:02d}" if minutes else f"-{hours}h"


def _runs(cells: Sequence[tuple[str, Style]]) -> list[Segment]:
    runs: list[tuple[str, Style]] = []
    for sign, style in cells:
        if runs and runs[-1][1] is style:
            runs[-1] = (runs[-1][0] + sign, style)
        else:
            runs.append((sign, style))
    return [Segment(text, style) for text, style in runs]


def beside_scale(
    lines: Sequence[Sequence[Segment]], labels: tuple[str, str, str], gutter: int, look: Look
) -> list[list[Segment]]:
    """Lines with the scale's labels left of them: at the top, in the middle where there is room, at the bottom."""
    height = len(lines)
    texts = {0: labels[0], height - 1: labels[2]}
    if height >= 5:
        texts[height // 2] = labels[1]
    return [
        [cell(texts.get(place, "") + " ", gutter, look["dim"], align=">"), *line]
        for place, line in enumerate(lines)
    ]
