"""The first line: where one is, whether the line to it lives, and in which mode the program runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from textual.strip import Strip

from console.tui.widgets.lines import Lines
from console.tui.widgets.strip import both_ends, safe


@dataclass(frozen=True, slots=True)
class Heading:
    """What the header says.

    Attributes:
        name: The droplet, or the screen where that shows many.
        colour: The droplet's own colour, by name.
        production: Marked.
        state: The state of the line, in words.
        role: How that is to be seen: a role of the theme.
        note: What else there is to say: round trip, host name.
        badges: DEMO, READ-ONLY, PAUSED.
        clock: The time of day.
    """

    name: str
    colour: str | None = None
    production: bool = False
    state: str = ""
    role: str = "text"
    note: str = ""
    badges: Sequence[str] = ()
    clock: str = ""


class Header(Lines):
    """One line at the top of each screen."""

    HEIGHT = 1

    def __init__(self) -> None:
        super().__init__()
        self._heading = Heading("")

    def show(self, heading: Heading) -> None:
        """Say this from now on."""
        if heading != self._heading:
            self._heading = heading
            self.redraw()

    def draw(self, width: int, height: int) -> list[Strip]:
        """See ``Lines``."""
        said, bar = self._heading, self.style("bar")
        left = [Segment(" "), Segment(safe(said.name, self.symbols), self.look.named(said.colour))]
        if said.production:
            left += [Segment(" "), Segment(" PRODUCTION ", self.style("production"))]
        if said.state:
            left += [
                Segment("  "),
                Segment(self.symbols.dot + " ", self.style(said.role)),
                Segment(safe(said.state, self.symbols), self.style(said.role)),
            ]
        if said.note:
            left += [Segment("  "), Segment(safe(said.note, self.symbols), self.style("dim"))]
        right = [Segment(" ")]
        for badge in said.badges:
            right += [Segment(f" {badge} ", self.style("badge")), Segment(" ")]
        right.append(Segment(said.clock + " "))
        return [both_ends(left, right, width, bar)]
