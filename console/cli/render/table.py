"""Columns of text."""

from __future__ import annotations

from collections.abc import Sequence

from console.domain.words.cells import fit, left, right, width


def table(rows: Sequence[Sequence[str]], align: str, limit: int | None, gap: int = 2) -> list[str]:
    """Rows with their columns aligned.

    Args:
        rows: All of one length; the first is the heading.
        align: "<" or ">" for each column.
        limit: Cells of a line; the first column is cut for it, to 12 at least. None: nothing is cut.
        gap: Spaces between columns.
    """
    widths = [max(width(row[place]) for row in rows) for place in range(len(align))]
    if limit is not None:
        rest = sum(widths[1:]) + gap * (len(widths) - 1)
        widths[0] = min(widths[0], max(limit - rest, 12))
    lines = []
    for row in rows:
        cells = [fit(row[0], widths[0]), *row[1:]]
        placed = [
            left(cell, room) if side == "<" else right(cell, room)
            for cell, room, side in zip(cells, widths, align, strict=True)
        ]
        lines.append((" " * gap).join(placed).rstrip())
    return lines
