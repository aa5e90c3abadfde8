"""Rows of a list: what a cell is, and which rows are shown in which order. No drawing here."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from console.domain.telemetry.text import printable


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        key: Its name in the program.
        title: Its heading.
        width: Cells; the column with ``grows`` takes what is left besides.
        align: "<" or ">".
        priority: Where room is short, those with the highest number go first; 0 always stays.
        grows: Takes the room that is left, up to ``most`` cells.
        most: The widest it becomes.
        sortable: Rows can be put in its order.
    """

    key: str
    title: str
    width: int
    align: str = ">"
    priority: int = 0
    grows: bool = False
    most: int = 40
    sortable: bool = True


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, the theme's role it is shown in, and what it is sorted by (None goes last)."""

    text: str
    role: str = "text"
    order: float | str | None = None
    colour: str | None = None
    """One of a droplet's own colours, in place of the role."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a list.

    Attributes:
        key: Stays the same while the line means the same thing.
        cells: By the column's key.
        group: The heading it stands under where the list is grouped.
    """

    key: str
    cells: dict[str, Cell]
    group: str = ""


def arrange(
    rows: Sequence[Row],
    *,
    sort: str | None = None,
    reverse: bool = False,
    filtered: str = "",
    grouped: bool = False,
) -> list[Row]:
    """The rows that are shown, in order.

    Args:
        rows: All there are, in their own order.
        sort: The key of the column they are sorted by; None keeps their own order.
        reverse: The other way round; rows without a figure stay last.
        filtered: See ``matcher``.
        grouped: Rows of a group stand together, groups by name.
    """
    matches = matcher(filtered)
    shown = [row for row in rows if matches(" ".join(cell.text for cell in row.cells.values()))]
    if sort is not None:
        having = [row for row in shown if sort in row.cells and row.cells[sort].order is not None]
        held = {id(row) for row in having}
        numbers = [row for row in having if not isinstance(row.cells[sort].order, str)]
        words = [row for row in having if isinstance(row.cells[sort].order, str)]
        numbers.sort(key=lambda row: float(row.cells[sort].order or 0), reverse=reverse)
        words.sort(key=lambda row: str(row.cells[sort].order).casefold(), reverse=reverse)
        shown = [*numbers, *words, *(row for row in shown if id(row) not in held)]
    if grouped:
        shown.sort(key=lambda row: (row.group == "", row.group.casefold()))
    return shown


@lru_cache(maxsize=32)
def matcher(text: str) -> Callable[[str], bool]:
    """What a filter lets through: a regular expression or plain text, whatever the case; "!" turns it round.

    Text that is no regular expression is looked for as it stands.
    """
    turned = text.startswith("!")
    wanted = text[1:] if turned else text
    if not wanted:
        return lambda _: True
    try:
        pattern = re.compile(wanted, re.IGNORECASE)
    except re.error:
        pattern = re.compile(re.escape(wanted), re.IGNORECASE)
    return lambda line: (pattern.search(printable(line)) is None) is turned


def fitting(columns: Sequence[Column], width: int, gap: int) -> list[tuple[Column, int]]:
    """The columns that have room, each with its width, in their own order.

    Args:
        columns: All of them.
        width: Cells there are.
        gap: Cells between two columns.
    """
    kept = list(columns)

    def needed() -> int:
        return sum(column.width for column in kept) + gap * (len(kept) - 1)

    while needed() > width and any(column.priority for column in kept):
        kept.remove(max(reversed(kept), key=lambda column: column.priority))
    left = max(width - needed(), 0)
    placed = []
    for column in kept:
        more = min(left, column.most - column.width) if column.grows else 0
        left -= more
        placed.append((column, column.width + more))
    return placed
