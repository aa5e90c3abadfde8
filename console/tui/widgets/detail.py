"""A few lines under a list: what is to be said about the line under the cursor."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.strip import Strip

from console.domain.words.cells import wrap
from console.tui.widgets.lines import Lines
from console.tui.widgets.strip import line, safe


class Detail(Lines):
    """Texts with their roles, wrapped; what does not fit is counted."""

    HEIGHT = 4

    def __init__(self) -> None:
        super().__init__()
        self.styles.max_height = "20%"
        self._texts: list[tuple[str, str]] = []

    def show(self, texts: Sequence[tuple[str, str]]) -> None:
        """Show texts, each with a role of the theme; the first ones matter most."""
        if list(texts) != self._texts:
            self._texts = list(texts)
            self.redraw()

    def draw(self, width: int, height: int) -> list[Strip]:
        """See ``Lines``."""
        lines = [
            (part, role)
            for text, role in self._texts
            for part in wrap(safe(text, self.symbols), max(width - 2, 10), "  ")
        ]
        room = height - 1  # a blank line keeps it apart from the list
        if len(lines) > room:
            lines = [
                *lines[: room - 1],
                (f"and {len(lines) - room + 1} lines more: enter opens the droplet", "dim"),
            ]
        return [
            Strip.blank(width),
            *(line([Segment("  "), Segment(text, self.style(role))], width) for text, role in lines),
        ]
