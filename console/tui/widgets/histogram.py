"""Counts by size as upright bars, each with its size below; neighbours share a bar where there is no room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.segment import Segment

from console.tui.theme import Look
from console.tui.widgets.graph import EIGHTHS, calmer
from console.tui.widgets.strip import cell


@dataclass(frozen=True, slots=True)
class Bar:
    """Sizes from ``first`` to ``last``, and how often they came up."""

    first: int
    last: int
    count: int

    @property
    def label(self) -> str:
        """One size, or "9-16" for several."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def bars(counts: Mapping[int, int], room: int) -> list[Bar]:
    """At most ``room`` bars: one for each size, or for stretches of sizes that end at powers of two."""
    sizes = sorted(size for size, count in counts.items() if count > 0)
    if len(sizes) <= room:
        return [Bar(size, size, counts[size]) for size in sizes]
    factor = 2
    while factor <= sizes[-1]:
        found = _stretches(counts, sizes, factor)
        if len(found) <= room:
            return found
        factor *= 2
    return [Bar(sizes[0], sizes[-1], sum(counts[size] for size in sizes))]


def _stretches(counts: Mapping[int, int], sizes: Sequence[int], factor: int) -> list[Bar]:
    found: list[Bar] = []
    first, last = 1, 1
    for size in sizes:
        while size > last:
            first, last = last + 1, last * factor
        upper = min(last, sizes[-1])
        if found and found[-1].first == first:
            found[-1] = Bar(first, upper, found[-1].count + counts[size])
        else:
            found.append(Bar(first, upper, counts[size]))
    return found


def histogram(
    counts: Mapping[int, int], width: int, height: int, look: Look, role: str = "graph"
) -> list[list[Segment]]:
    """``height`` lines, sizes on the lowest; the largest bar is as high as there is room, the others in proportion.

    Args:
        counts: By size.
        width: Cells.
        height: Lines, 2 at least.
        look: Colours and signs.
        role: The bars'.
    """
    widest = max((len(str(size)) for size in counts), default=1)
    shown = bars(counts, max((width + 1) // (max(widest, 2) + 1), 1))
    if shown and max(len(bar.label) for bar in shown) > max(widest, 2):
        widest = max(len(bar.label) for bar in shown)
        shown = bars(counts, max((width + 1) // (widest + 1), 1))
    each = min(max((width + 1) // max(len(shown), 1) - 1, 1), 7)
    most = max((bar.count for bar in shown), default=0)
    rows, filling = height - 1, calmer(look[role], look)
    lines = []
    for row in range(rows - 1, -1, -1):
        text = ""
        for bar in shown:
            eighths = max(round(bar.count / most * rows * EIGHTHS), 1)
            filled = min(max(eighths - row * EIGHTHS, 0), EIGHTHS)
            text += look.symbols.levels[filled] * each + " "
        lines.append([cell(text[:width], width, filling)])
    labels = [cell(bar.label, each, look["dim"], align="^", ellipsis=look.symbols.ellipsis) for bar in shown]
    foot = [piece for label in labels for piece in (label, Segment(" "))]
    used = sum(piece.cell_length for piece in foot)
    return [*lines, [*foot[: len(foot) - (used > width)], Segment(" " * max(width - used, 0))]]
