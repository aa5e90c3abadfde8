"""Every droplet in one table: what to look at first, on call."""

from __future__ import annotations

from collections.abc import Mapping, Set

from textual.app import ComposeResult

from console.services.actions import FLEET
from console.services.link import Phase
from console.tui.link_words import full
from console.tui.screens.base import ConsoleScreen, bindings
from console.tui.screens.fleet_rows import COLUMNS, blank, remarks, row
from console.tui.widgets.detail import Detail
from console.tui.widgets.header import Heading
from console.tui.widgets.rows import Row
from console.tui.widgets.table import Table

EVERY_S = 1.0
"""New figures are shown this often; a change of a line at once."""


class FleetScreen(ConsoleScreen):
    """See the module."""

    MODE = FLEET
    BINDINGS = bindings(FLEET)

    def __init__(self) -> None:
        super().__init__()
        self._table = Table(COLUMNS, empty="no droplets: name one, or list them in config.yaml")
        self._detail = Detail()
        self._rows: dict[str, Row] = {}
        self._stale: set[str] = set()
        self._phases: dict[str, Phase | None] = {}
        self._shown_at = 0.0

    def body(self) -> ComposeResult:
        """See ``ConsoleScreen``."""
        yield self._table
        yield self._detail

    def on_mount(self) -> None:
        """See ``ConsoleScreen``."""
        self._table.focus()

    def heading(self, now: float) -> Heading:
        """See ``ConsoleScreen``."""
        views = self.state.views
        live = sum(view.live for view in views)
        ill = sum(
            bool(view.problems) or (view.link is not None and view.link.phase is Phase.FAILED) for view in views
        )
        words = f"{live} of {len(self.state.droplets)} live" + (f", {ill} with problems" if ill else "")
        role = "bad" if ill else "good" if live == len(self.state.droplets) else "warn" if live else "dim"
        note = f"filter /{self._table.filtered}" if self._table.filtered else ""
        return Heading("Fleet", state=words, role=role, note=note, badges=self.state.badges, clock=self.clock(now))

    def update_from(self, changed: Set[str], now: float) -> None:
        """See ``ConsoleScreen``."""
        if not self.state.views:
            self._rows = {name: blank(droplet) for name, droplet in self.state.droplets.items()}
            self._table.show(list(self._rows.values()))
            return
        self._stale |= changed
        board = self.state.board
        turned = False
        for name in changed:
            link = board.view(name).link
            phase = link.phase if link is not None else None
            if self._phases.get(name, ...) != phase:
                self._phases[name] = phase
                turned = True
        if turned or len(changed) == len(self._phases) or now - self._shown_at >= EVERY_S:
            self._show(now)

    def tick(self, now: float) -> None:
        """See ``ConsoleScreen``; what is said about the droplet under the cursor counts down."""
        super().tick(now)
        if not self.state.paused:
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
    def target(self) -> str | None:
        """See ``ConsoleScreen``."""
        return self._table.cursor

    @property
    def targets(self) -> list[str]:
        """The marked ones, or the one under the cursor."""
        marked = [row.key for row in self._table.rows if row.key in self._table.marked]
        return marked or super().targets

    @property
    def table(self) -> Table:
        """The list."""
        return self._table

    def copied(self) -> str:
        """The droplet's name, and what is said about it."""
        name = self.target
        return "" if name is None else "\n".join([name, *(text for text, _ in self._remarks(name))])

    def exported(self) -> Mapping[str, str]:
        """The table as CSV, the samples that it is made from as JSON; of the rows that are shown."""
        from console.tui.screens.lists import samples_document, table_document

        names = [row.key for row in self._table.rows]
        views = [self.state.board.view(name) for name in names]
        return {"csv": table_document(COLUMNS, self._table.rows), "json": samples_document(views)}

    def action_open(self) -> None:
        """Open what is under the cursor."""
        if self.target is not None:
            self.console.open_droplet(self.target)

    def action_sort_next(self) -> None:
        """See the table of actions."""
        self._table.order(step=1)

    def action_sort_previous(self) -> None:
        """See the table of actions."""
        self._table.order(step=-1)

    def action_sort_reverse(self) -> None:
        """See the table of actions."""
        self._table.order(reverse=True)

    def action_mark(self) -> None:
        """See the table of actions."""
        self._table.mark()

    def action_group(self) -> None:
        """See the table of actions."""
        self._table.group()

    def on_table_moved(self) -> None:
        """The cursor stands on another droplet."""
        self._tell()

    def on_table_chosen(self) -> None:
        """A droplet was clicked."""
        self.action_open()

    def _show(self, now: float) -> None:
        board = self.state.board
        for name in self._stale:
            self._rows[name] = row(self.state.droplets[name], board.view(name), now)
        self._stale.clear()
        self._shown_at = now
        self._table.show([self._rows[name] for name in board.droplets if name in self._rows])
        self._tell()
        super().tick(now)

    def _tell(self) -> None:
        name = self.target if self.state.views else None
        self._detail.show([] if name is None else self._remarks(name))

    def _remarks(self, name: str) -> list[tuple[str, str]]:
        view = self.state.board.view(name)
        return remarks(view, full(view.link, self.console.now(), view.lost_at))
