"""The last line: the keys that do something here, from the table of actions; a click does the same."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip
from textual.timer import Timer

from console.services.actions import Action
from console.tui.widgets.lines import Lines
from console.tui.widgets.strip import line, safe

SAID_S = 5.0


class Footer(Lines):
    """One line of keys; what does not fit is in the help, whose key always stands last."""

    HEIGHT = 1

    def __init__(self, actions: Sequence[Action]) -> None:
        super().__init__()
        labelled = [action for action in actions if action.label]
        self._actions = [action for action in labelled if action.id != "help"]
        self._help = [action for action in labelled if action.id == "help"]
        self._said: tuple[str, str] | None = None
        self._until: Timer | None = None

    def say(self, words: str, role: str) -> None:
        """Say something in the keys' place for a moment."""
        if self._until is not None:
            self._until.stop()
        self._said = (words, role)
        self._until = self.set_timer(SAID_S, self._hush)
        self.redraw()

    def draw(self, width: int, height: int) -> list[Strip]:
        """See ``Lines``."""
        pieces = [Segment(" ")]
        if self._said is not None:
            words, role = self._said
            pieces.append(Segment(safe(words, self.symbols), self.style(role)))
            return [line(pieces, width, self.style("bar"))]
        for action in self._shown(width):
            pieces += [
                Segment(action.key, self.style("accent")),
                Segment(f" {action.label}   ", self.style("dim")),
            ]
        return [line(pieces, width, self.style("bar"))]

    async def on_click(self, event: events.Click) -> None:
        """Do what stands under the pointer."""
        at = 1
        for action in self._shown(self.size.width):
            at += _cells(action)
            if event.x < at:
                await self.screen.run_action(action.id)
                return

    def _hush(self) -> None:
        self._said = None
        self.redraw()

    def _shown(self, width: int) -> list[Action]:
        left = width - 1 - sum(_cells(action) for action in self._help)
        shown = []
        for action in self._actions:
            left -= _cells(action)
            if left < 0:
                break
            shown.append(action)
        return [*shown, *self._help]


def _cells(action: Action) -> int:
    return cell_len(action.key) + 1 + cell_len(action.label or "") + 3
