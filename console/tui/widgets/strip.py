"""Lines of styled text with fixed widths, and which cells of two lines differ.

Everything is measured as Textual measures it; what came from a droplet goes through ``safe`` first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from console.domain.telemetry.text import printable
from console.domain.words.cells import plain_ascii
from console.tui.theme import ASCII, UNICODE, Symbols

NONE = Style.null()
JOIN = 12
"""Changed stretches of a line that are nearer than this are painted as one: moving the cursor costs as much."""

_PLAIN_LEVELS = str.maketrans(UNICODE.levels, ASCII.levels)


def safe(text: str, symbols: Symbols) -> str:
    """Text that may be written to the terminal: one line, no control characters, ASCII where it must be."""
    text = printable(text)
    return text if symbols.unicode else plain_ascii(text.translate(_PLAIN_LEVELS))


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """``text`` cut to ``width`` cells, with an ellipsis where something was cut."""
    if width <= 0:
        return ""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + ellipsis


def cell(text: str, width: int, style: Style = NONE, *, align: str = "<", ellipsis: str = "…") -> Segment:
    """A piece of exactly ``width`` cells.

    Args:
        text: Safe text.
        width: Cells; longer text is cut.
        style: Its style.
        align: "<", ">" or "^".
        ellipsis: One cell that stands where text was cut.
    """
    used = cell_len(text)
    if used > width:
        return Segment(fit(text, width, ellipsis), style)
    room = width - used
    before = room if align == ">" else room // 2 if align == "^" else 0
    return Segment(" " * before + text + " " * (room - before), style)


def line(pieces: Iterable[Segment], width: int, style: Style = NONE) -> Strip:
    """One line of exactly ``width`` cells: cut or filled up, with ``style`` under all of it."""
    strip = Strip(pieces).simplify().adjust_cell_length(width)
    return strip.apply_style(style) if style else strip


def both_ends(left: Sequence[Segment], right: Sequence[Segment], width: int, style: Style = NONE) -> Strip:
    """One line with pieces at both ends; where they meet, the left gives way."""
    room = max(width - sum(piece.cell_length for piece in right), 0)
    start = Strip(left).adjust_cell_length(room)
    return line([*start, *right], width, style)


def changed(old: Strip, new: Strip) -> list[tuple[int, int]]:
    """The stretches ``(from, to)`` in cells that differ between two lines; empty where none does."""
    if old is new or old == new:
        return []
    if old.cell_length != new.cell_length:
        return [(0, max(old.cell_length, new.cell_length))]
    before, after = _cells(old), _cells(new)
    found: list[tuple[int, int]] = []
    at = 0
    for one, other in zip(before, after, strict=False):
        end = at + 1
        if one != other:
            if found and at - found[-1][1] < JOIN:
                found[-1] = (found[-1][0], end)
            else:
                found.append((at, end))
        at = end
    return found or [(0, new.cell_length)]


def _cells(strip: Strip) -> list[tuple[str, Style | None]]:
    """Each cell's text and style; the second cell of a wide character changes with the first."""
    found: list[tuple[str, Style | None]] = []
    for text, style, _ in strip:
        if text.isascii():
            found += [(char, style) for char in text]
            continue
        for char in text:
            width = cell_len(char)
            if width == 0 and found:  # a combining mark belongs to what stands before it
                found[-1] = (found[-1][0] + char, style)
            else:
                found += [(char, style), ("\0" + char, style)][: max(width, 1)]
    return found
