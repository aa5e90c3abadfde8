"""A paragraph: as high as its text is long, wrapped, never parsed as markup."""

from __future__ import annotations

from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip

from console.domain.words.cells import wrap
from console.tui.widgets.lines import Lines
from console.tui.widgets.strip import line, safe


class Words(Lines):
    """Text in one role of the theme; each line of it is made safe."""

    HEIGHT = "auto"

    def __init__(self, text: str, role: str = "text") -> None:
        super().__init__()
        self._text = text
        self._role = role

    def show(self, text: str, role: str = "text") -> None:
        """Say this from now on."""
        self._text, self._role = text, role
        self._drawn_for = (0, 0)
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """See Textual."""
        return max(len(self._wrapped(width)), 1)

    def draw(self, width: int, height: int) -> list[Strip]:
        """See ``Lines``."""
        return [line([Segment(text, self.style(self._role))], width) for text in self._wrapped(width)]

    def _wrapped(self, width: int) -> list[str]:
        return [part for text in self._text.split("\n") for part in wrap(safe(text, self.symbols), max(width, 10))]
