"""A list of any length: a heading, the lines that fit, a cursor. Only what changed goes to the terminal.

The cursor stays on its row, by key, whatever is sorted, filtered or added around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from console.tui.widgets.lines import Lines
from console.tui.widgets.rows import Column, Row, arrange, fitting
from console.tui.widgets.strip import cell, fit, line, safe

GAP = 2
WHEEL = 3
"""Lines that a turn of the wheel moves the cursor."""


class Table(Lines, can_focus=True):
    """See the module.

    Args:
        columns: In order.
        empty: What is said where there is no row.
        sort: The column to sort by at first; None for the rows' own order.
        newest: Keep the cursor on the first line while it stands there, whatever comes.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f", "page(1)", show=False),
        Binding("home", "edge(False)", show=False),
        Binding("end,G", "edge(True)", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another row, or on none."""

    class Chosen(Message):
        """A row was clicked twice, or clicked while the cursor was on it."""

    def __init__(
        self, columns: Sequence[Column], *, empty: str, sort: str | None = None, newest: bool = False
    ) -> None:
        super().__init__()
        self._columns = tuple(columns)
        self._empty = empty
        self._newest = newest
        self._all: Sequence[Row] = ()
        self._cursor_at = 0
        self._top = 0
        self._strips: dict[str, tuple[Row, tuple[object, ...], Strip]] = {}
        self.rows: list[Row] = []
        """What is shown, in order; scrolled or not."""
        self.marked: set[str] = set()
        self.sort, self.reverse = sort, False
        self.filtered = ""
        self.grouped = False

    @property
    def cursor(self) -> str | None:
        """The key of the row under the cursor."""
        return self.rows[self._cursor_at].key if self.rows else None

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows."""
        self._all = rows
        self._arrange()

    def order(self, *, step: int = 0, reverse: bool = False) -> None:
        """Sort by the column ``step`` further on, or turn the order round."""
        keys = [column.key for column in self._columns if column.sortable]
        if step and keys:
            at = keys.index(self.sort) if self.sort in keys else -1 if step > 0 else 0
            self.sort, self.reverse = keys[(at + step) % len(keys)], False
        if reverse:
            self.reverse = not self.reverse
        self._arrange()

    def narrow(self, text: str) -> None:
        """Show only rows that match, see ``console.tui.widgets.rows.matcher``."""
        self.filtered = text
        self._arrange()

    def group(self) -> None:
        """Group the rows, or no more."""
        self.grouped = not self.grouped
        self._arrange()

    def mark(self) -> None:
        """Mark the row under the cursor, or no more, and go on to the next."""
        if self.cursor is not None:
            self.marked ^= {self.cursor}
            self.action_move(1)
            self.redraw()

    def go_to(self, key: str) -> None:
        """Put the cursor on a row."""
        for at, row in enumerate(self.rows):
            if row.key == key:
                self._move_to(at)
                return

    def action_move(self, by: int) -> None:
        """Move the cursor by lines."""
        self._move_to(self._cursor_at + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by pages."""
        self._move_to(self._cursor_at + by * max(self.size.height - 2, 1))

    def action_edge(self, last: bool) -> None:
        """Move the cursor to the first or last row."""
        self._move_to(len(self.rows) - 1 if last else 0)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel."""
        self._move_to(self._cursor_at + WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel."""
        self._move_to(self._cursor_at - WHEEL)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor there; on the heading, sort by that column."""
        if event.y == 0:
            self._sort_at(event.x)
            return
        at = self._top + event.y - 1
        if at >= len(self.rows):
            return
        if at == self._cursor_at or event.chain > 1:
            self._move_to(at)
            self.post_message(self.Chosen())
        else:
            self._move_to(at)

    def draw(self, width: int, height: int) -> list[Strip]:
        """See ``Lines``."""
        placed = fitting(self._columns, width - 2, GAP)
        room = max(height - 1, 0)
        self._top = max(min(self._top, self._cursor_at, len(self.rows) - room), self._cursor_at - room + 1, 0)
        lines = [self._heading(placed, width)]
        if not self.rows:
            words = f"nothing matches /{self.filtered}" if self.filtered and self._all else self._empty
            lines += [
                Strip.blank(width),
                line([Segment("  " + safe(words, self.symbols), self.style("dim"))], width),
            ]
            return lines
        for at in range(self._top, min(self._top + room, len(self.rows))):
            lines.append(self._line(self.rows[at], placed, width, at == self._cursor_at))
        return lines

    def repaint(self) -> None:
        """See ``Lines``."""
        self._strips.clear()
        super().repaint()

    def _arrange(self) -> None:
        before, stayed = self.cursor, self._newest and self._cursor_at == 0
        self.rows = arrange(
            self._all, sort=self.sort, reverse=self.reverse, filtered=self.filtered, grouped=self.grouped
        )
        keys = [row.key for row in self.rows]
        if before in keys and not stayed:
            moved = keys.index(before) - self._cursor_at
            self._cursor_at += moved
            self._top += moved if self._newest else 0
        self._cursor_at = max(min(self._cursor_at, len(self.rows) - 1), 0)
        if len(self._strips) > len(self._all):
            held = {row.key for row in self._all}
            self._strips = {key: kept for key, kept in self._strips.items() if key in held}
        self.redraw()
        if self.cursor != before:
            self.post_message(self.Moved())

    def _move_to(self, at: int) -> None:
        at = max(min(at, len(self.rows) - 1), 0)
        if at != self._cursor_at:
            self._cursor_at = at
            self.redraw()
            self.post_message(self.Moved())

    def _sort_at(self, x: int) -> None:
        end = 2
        for column, width in fitting(self._columns, self.size.width - 2, GAP):
            end += width + GAP
            if x < end:
                if column.sortable:
                    self.reverse = column.key == self.sort and not self.reverse
                    self.sort = column.key
                    self._arrange()
                return

    def _heading(self, placed: Sequence[tuple[Column, int]], width: int) -> Strip:
        signs = self.symbols
        pieces = [Segment("  ")]
        for column, room in placed:
            here = column.key == self.sort
            sign = (signs.falling if self.reverse else signs.rising) if here else ""
            title = sign + column.title if column.align == ">" else column.title + sign
            pieces += [
                cell(title, room, self.style("accent" if here else "heading"), align=column.align),
                Segment(" " * GAP),
            ]
        return line(pieces, width)

    def _line(self, row: Row, placed: Sequence[tuple[Column, int]], width: int, cursor: bool) -> Strip:
        marked = row.key in self.marked
        made_for = (width, cursor, marked, self.look.name)
        kept = self._strips.get(row.key)
        if kept is not None and kept[0] is row and kept[1] == made_for:
            return kept[2]
        sign = f"{self.symbols.mark} " if marked else "  "
        pieces = [Segment(sign, self.style("mark") if marked and not (cursor and self.look.flat_cursor) else None)]
        for column, room in placed:
            shown = row.cells.get(column.key)
            if shown is None:
                pieces.append(Segment(" " * (room + GAP)))
                continue
            style = self.look.named(shown.colour) if shown.colour else self.style(shown.role)
            if cursor and self.look.flat_cursor:
                style = Style.null()
            text = safe(shown.text, self.symbols)
            if style.bgcolor is not None:  # a mark is as long as its text
                text = fit(text, room, self.symbols.ellipsis)
                pieces += [Segment(text, style), Segment(" " * (room - cell_len(text) + GAP))]
                continue
            pieces.append(cell(text, room, style, align=column.align, ellipsis=self.symbols.ellipsis))
            # In the cell's own style: each change of style costs more bytes than the cells it is for.
            pieces.append(Segment(" " * GAP, style))
        under = self.style("cursor") if cursor else Style.null()
        strip = line(pieces, width, under)
        self._strips[row.key] = (row, made_for, strip)
        return strip
