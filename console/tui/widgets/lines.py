"""The base of what is drawn line by line: it repaints only the cells that changed.

Textual sends a refreshed widget's whole region again, changed or not; over a slow link that is what one waits for.
"""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from console.tui.theme import Look, Symbols, look
from console.tui.widgets.strip import changed


class Lines(Widget):
    """Draws itself as lines. Change its state, then call ``redraw``."""

    HEIGHT: ClassVar[int | str] = "1fr"
    """Lines, or a share of what is left. No style sheet: parsing one takes part of the first paint."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self.styles.height = self.HEIGHT
        self._lines: list[Strip] = []
        self._drawn_for = (0, 0)

    @property
    def look(self) -> Look:
        """The colours and signs in force."""
        found = getattr(self.app, "look", None)
        return found if isinstance(found, Look) else look("dark")

    @property
    def symbols(self) -> Symbols:
        """The signs in force."""
        return self.look.symbols

    def style(self, role: str) -> Style:
        """The style of a role, see ``console.tui.theme.ROLES``."""
        return self.look[role]

    def draw(self, width: int, height: int) -> list[Strip]:
        """The lines as they are to be now, each ``width`` cells; missing ones at the end are blank."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw again, and send to the terminal what changed."""
        if not self.is_attached or not self.size:
            return
        width, height = self.size
        lines = self._complete(self.draw(width, height), width, height)
        if self._drawn_for != (width, height):
            self._lines, self._drawn_for = lines, (width, height)
            self.refresh()
            return
        regions = [
            Region(start, y, end - start, 1)
            for y, (old, new) in enumerate(zip(self._lines, lines, strict=True))
            for start, end in changed(old, new)
        ]
        self._lines = lines
        if regions:
            self.refresh(*regions)

    def repaint(self) -> None:
        """Draw all of it again: the colours changed."""
        self._drawn_for = (0, 0)
        self.redraw()

    def on_resize(self, event: events.Resize) -> None:
        """Draw for the new size."""
        self.redraw()

    def render_line(self, y: int) -> Strip:
        """Textual asks for a line."""
        if self._drawn_for != tuple(self.size):
            width, height = self.size
            self._lines, self._drawn_for = self._complete(self.draw(width, height), width, height), (width, height)
        return self._lines[y] if y < len(self._lines) else Strip.blank(self.size.width)

    def _complete(self, lines: list[Strip], width: int, height: int) -> list[Strip]:
        """All lines, with the palette's ground under them: Textual puts none under lines drawn like this."""
        found = [*lines[:height], *(Strip.blank(width) for _ in range(height - len(lines)))]
        ground = self.look.ground
        return [strip.apply_style(ground) for strip in found] if ground else found
