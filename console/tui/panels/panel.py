"""What every panel can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.segment import Segment
from textual.strip import Strip

from console.domain.telemetry.text import printable
from console.tui.panels.picture import Picture, Told
from console.tui.theme import Look
from console.tui.widgets.strip import both_ends, fit, line, safe


class Panel(Protocol):
    """A part of Overview. It keeps nothing but what makes drawing cheap."""

    id: str
    title: str

    def draw(self, picture: Picture, width: int, height: int, look: Look, *, chosen: bool) -> list[Strip]:
        """At most ``height`` lines of exactly ``width`` cells, the title first."""

    def figures(self, picture: Picture) -> Sequence[Told]:
        """Its figures, for copying and export."""

    def explain(self, picture: Picture) -> str:
        """One line about what is shown: where it comes from, or why it is not to be had."""


def text(look: Look, words: str, role: str = "text") -> Segment:
    """Words in a role's style, safe for the terminal."""
    return Segment(safe(words, look.symbols), look[role])


def clip(look: Look, words: str, width: int, role: str = "text") -> Segment:
    """Likewise, cut to ``width`` cells."""
    return Segment(fit(safe(words, look.symbols), width, look.symbols.ellipsis), look[role])


def title_line(
    look: Look, title: str, width: int, *, chosen: bool, left: Sequence[Segment] = (), right: Sequence[Segment] = ()
) -> Strip:
    """A panel's first line: its title, figures after it, notes at the right end."""
    head = [text(look, title, "accent" if chosen else "heading"), Segment("  ")]
    return both_ends([*head, *left], right, width)


def wrapped(look: Look, words: str, width: int, role: str = "dim", lines: int = 3) -> list[Strip]:
    """Words over several lines, broken at spaces, cut at the end of the last."""
    from console.domain.words.cells import wrap

    found = wrap(safe(printable(words), look.symbols), max(width, 1))
    if len(found) > lines:
        found = [*found[: lines - 1], " ".join(found[lines - 1 :])]
    return [line([clip(look, part, width, role)], width) for part in found]
