"""Any action by its words: type a part of it, enter does it. Textual's own redraws all the time it is open."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from console.services.actions import Action, on_screen
from console.tui.modals.base import Modal
from console.tui.widgets.rows import Cell, Column, Row
from console.tui.widgets.table import Table

COLUMNS = (
    Column("title", "", 30, align="<", grows=True, most=60, sortable=False),
    Column("key", "KEY", 6, align="<", sortable=False),
)


class Palette(Modal[str]):
    """Lists the actions of a screen; what was chosen runs after it has closed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "give_up", show=False),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
    ]

    def __init__(self, mode: str) -> None:
        super().__init__("What would you like to do?")
        self._actions = {action.id: action for action in on_screen(mode) if action.id != "palette"}
        self._table = Table(COLUMNS, empty="no action is called that")
        self._table.can_focus = False
        self._table.styles.height = 14

    def inside(self) -> ComposeResult:
        """See ``Modal``."""
        field = Input(select_on_focus=False)
        field.cursor_blink = False
        yield field
        yield self._table

    def on_mount(self) -> None:
        """Type at once."""
        self.query_one(Input).focus()
        self._show("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """A key was typed."""
        event.stop()
        self._show(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        self._choose()

    def on_table_chosen(self) -> None:
        """A click."""
        self._choose()

    def action_move(self, by: int) -> None:
        """The arrows."""
        self._table.action_move(by)

    def _show(self, text: str) -> None:
        words = text.casefold().split()
        found = [
            action
            for action in self._actions.values()
            if all(word in f"{action.title} {action.group} {action.label}".casefold() for word in words)
        ]
        self._table.show([_row(action) for action in found])

    def _choose(self) -> None:
        self.answer(self._table.cursor)


def _row(action: Action) -> Row:
    return Row(action.id, {"title": Cell(action.title), "key": Cell(action.key, "accent")})
