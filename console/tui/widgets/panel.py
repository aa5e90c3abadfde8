"""A part of a screen with a title: a heading line, then what it shows; it can be made large."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip

from console.tui.widgets.lines import Lines
from console.tui.widgets.strip import both_ends, safe


class Panel(Lines):
    """A titled part. Subclasses draw what is under the title in ``body``."""

    def __init__(self, title: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.title = title
        self.note = ""
        """What stands at the right end of the title line: the time window, a source."""
        self.chosen = False
        """The panel that keys act on."""

    def body(self, width: int, height: int) -> list[Strip]:
        """The lines under the title."""
        raise NotImplementedError

    def draw(self, width: int, height: int) -> list[Strip]:
        """See ``Lines``."""
        role = "accent" if self.chosen else "heading"
        left = [Segment(safe(self.title, self.symbols), self.style(role))]
        right = [Segment(safe(self.note, self.symbols), self.style("dim"))] if self.note else []
        return [both_ends(left, right, width), *self.body(width, max(height - 1, 0))]
