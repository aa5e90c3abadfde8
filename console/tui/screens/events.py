"""What happened on all droplets, newest first."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set

from textual.app import ComposeResult

from console.services.actions import EVENTS
from console.services.happenings import Happening, Severity
from console.tui.screens.base import ConsoleScreen, bindings
from console.tui.widgets.detail import Detail
from console.tui.widgets.header import Heading
from console.tui.widgets.rows import Cell, Column, Row
from console.tui.widgets.table import Table

COLUMNS = (
    Column("time", "TIME", 8, align="<", sortable=False),
    Column("droplet", "DROPLET", 14, align="<", most=24, sortable=False),
    Column("kind", "WHAT", 6, align="<", priority=1, sortable=False),
    Column("words", "", 30, align="<", grows=True, most=400, sortable=False),
)
ROLES = {
    Severity.INFO: "text",
    Severity.GOOD: "good",
    Severity.WARNING: "warn",
    Severity.ERROR: "bad",
}


class EventsScreen(ConsoleScreen):
    """See the module."""

    MODE = EVENTS
    BINDINGS = bindings(EVENTS)

    def __init__(self) -> None:
        super().__init__()
        self._table = Table(COLUMNS, empty="nothing has happened since this console was started", newest=True)
        self._detail = Detail()
        self._rows: dict[int, tuple[Happening, Row]] = {}
        self._number = 0

    def body(self) -> ComposeResult:
        """See ``ConsoleScreen``."""
        yield self._table
        yield self._detail

    def on_mount(self) -> None:
        """See ``ConsoleScreen``."""
        self._table.focus()

    def heading(self, now: float) -> Heading:
        """See ``ConsoleScreen``."""
        count = len(self.state.board.happenings)
        note = f"filter /{self._table.filtered}" if self._table.filtered else ""
        return Heading(
            "Events", state=f"{count:,} since the start" if count else "none yet", note=note,
            badges=self.state.badges, clock=self.clock(now),
        )  # fmt: skip

    def update_from(self, changed: Set[str], now: float) -> None:
        """See ``ConsoleScreen``."""
        happenings = sorted(self.state.board.happenings, key=lambda happening: happening.time)
        rows = {}
        fresh = False
        for happening in happenings:
            known = self._rows.get(id(happening))
            if known is None:
                fresh = True
                self._number += 1
                known = (happening, _row(happening, str(self._number)))
            rows[id(happening)] = known
        if fresh or len(rows) != len(self._rows):
            self._rows = rows
            self._table.show([row for _, row in reversed(rows.values())])
            self._tell()

    def narrow(self, text: str) -> None:
        """See ``ConsoleScreen``."""
        self._table.narrow(text)
        self._tell()

    @property
    def filtered(self) -> str:
        """See ``ConsoleScreen``."""
        return self._table.filtered

    @property
    def table(self) -> Table:
        """The list."""
        return self._table

    def copied(self) -> str:
        """The event, as a line."""
        happening = self._happening()
        return "" if happening is None else f"{_moment(happening.time)} {happening.droplet}: {_said(happening)}"

    def exported(self) -> Mapping[str, str]:
        """The events that are shown, newest first."""
        from console.tui.screens.lists import events_documents

        by_key = {row.key: happening for happening, row in self._rows.values()}
        return events_documents([by_key[row.key] for row in self._table.rows])

    def action_open(self) -> None:
        """Open the droplet it happened on."""
        happening = self._happening()
        if happening is not None:
            self.console.open_droplet(happening.droplet)

    def on_table_moved(self) -> None:
        """The cursor stands on another event."""
        self._tell()

    def on_table_chosen(self) -> None:
        """An event was clicked."""
        self.action_open()

    def _happening(self) -> Happening | None:
        return next((happening for happening, row in self._rows.values() if row.key == self._table.cursor), None)

    def _tell(self) -> None:
        happening = self._happening()
        self._detail.show([] if happening is None else [(self.copied(), ROLES[happening.severity])])


def _row(happening: Happening, key: str) -> Row:
    role = ROLES[happening.severity]
    cells = {
        "time": Cell(_when(happening.time, time.time()), "dim"),
        "droplet": Cell(happening.droplet, "strong"),
        "kind": Cell(happening.kind.value, "dim"),
        "words": Cell(_said(happening), role),
    }
    return Row(key, cells)


def _when(moment: float, now: float) -> str:
    """The time of day; the date, for what is older than half a day."""
    return time.strftime("%H:%M:%S" if now - moment < 43_200 else "%b %d", time.localtime(moment))


def _said(happening: Happening) -> str:
    words = happening.words.removeprefix(f"{happening.droplet}: ")
    named = not happening.subject or words.startswith(happening.subject)
    return words if named else f"{happening.subject}: {words}"


def _moment(when: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when))
