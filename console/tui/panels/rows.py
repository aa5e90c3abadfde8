"""Panels that are lists: columns that fit, a cursor, and the window that follows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.segment import Segment
from textual.strip import Strip

from console.tui.panels.panel import text
from console.tui.theme import Look
from console.tui.widgets.rows import Cell, Column, fitting
from console.tui.widgets.strip import cell, line, safe

GAP = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a list.

    Attributes:
        cells: By the column's key; missing ones stay blank.
        words: In place of the cells after the first: why there are none.
        role: Of those words.
    """

    cells: dict[str, Cell] = field(default_factory=dict)
    words: str = ""
    role: str = "dim"


def heading(columns: Sequence[Column], width: int, look: Look, *, chosen: bool, title: str = "") -> Strip:
    """The columns' titles; the first stands for the panel's own title, or is ``title``."""
    pieces: list[Segment] = []
    for number, (column, room) in enumerate(fitting(columns, width - 1, GAP)):
        role = "accent" if chosen and number == 0 else "heading"
        words = title if title and number == 0 else column.title
        pieces.append(cell(words, room, look[role], align=column.align, ellipsis=look.symbols.ellipsis))
        pieces.append(Segment(" " * GAP))
    return line(pieces, width)


def entry_line(
    entry: Entry, columns: Sequence[Column], width: int, look: Look, *, under_cursor: bool, dim: bool
) -> Strip:
    """One line; a bar under all of it where the cursor is."""
    pieces: list[Segment] = []
    used = 0
    for number, (column, room) in enumerate(fitting(columns, width - 1, GAP)):
        if number == 1 and entry.words:
            pieces.append(text(look, entry.words, entry.role))
            break
        found = entry.cells.get(column.key, Cell(""))
        role = "dim" if dim and number else found.role
        shown = safe(found.text, look.symbols)
        pieces += [
            cell(shown, room, look[role], align=column.align, ellipsis=look.symbols.ellipsis),
            Segment(" " * GAP),
        ]
        used += room + GAP
    return line(pieces, width, look["cursor"]) if under_cursor else line(pieces, width)


def visible(count: int, cursor: int, room: int) -> range:
    """Which lines of a list are shown: a window of ``room`` lines that holds the cursor."""
    if count <= room:
        return range(count)
    first = min(max(cursor - room // 2, 0), count - room)
    return range(first, first + room)
