"""A terminal's picture as SVG: cells in their places, blocks and rules as shapes, text in any monospace font.

Rich's own export leaves the ground to a theme of its own, lets bars fall apart into slices, and loads a font from
elsewhere: none of that fits a picture that stands for what a terminal shows.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TypeVar

from rich.cells import cell_len
from rich.color import Color, blend_rgb
from rich.color_triplet import ColorTriplet
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme

WIDE, HIGH = 8.4, 18.0
"""Of one cell, pixels."""
_SIZE, _BASE = 14, 13.5
_PAD, _TITLE = 10.0, 26.0
_FONT = "ui-monospace,'DejaVu Sans Mono','Liberation Mono',Menlo,Consolas,monospace"
_FROM_BELOW = {sign: part / 8 for part, sign in enumerate("▁▂▃▄▅▆▇█", 1)}
_FROM_LEFT = {sign: part / 8 for part, sign in enumerate("▏▎▍▌▋▊▉", 1)}
_RULES = {"─": (0.0, 0.5, 1.0, 0.0), "│": (0.5, 0.0, 0.0, 1.0)}
"""Where a rule begins, and how far it goes, in cells."""


Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Cell:
    """One sign with its colours as they are drawn."""

    sign: str
    width: int
    front: str
    back: str
    bold: bool


def picture(shown: RenderableType, size: tuple[int, int], title: str, colours: TerminalTheme) -> str:
    """The SVG of what a terminal of that size shows.

    Args:
        shown: A whole screen.
        size: Columns and lines.
        title: Above it.
        colours: The terminal's own.
    """
    columns, lines = size
    width, height = columns * WIDE + 2 * _PAD, lines * HIGH + _TITLE + _PAD
    ground, ink = colours.background_color.hex, colours.foreground_color.hex
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="{_FONT}" '
        f'font-size="{_SIZE}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="6" fill="{ground}"/>',
        f'<text x="{width / 2:g}" y="17" text-anchor="middle" font-size="11" fill="{ink}" opacity="0.6">'
        f"{escape(title)}</text>",
    ]
    for row, line in enumerate(_cells(shown, size, colours)):
        parts += _line(line, _TITLE + row * HIGH, ground)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _cells(shown: RenderableType, size: tuple[int, int], colours: TerminalTheme) -> Iterator[list[Cell]]:
    console = Console(
        width=size[0], height=size[1], file=io.StringIO(), force_terminal=True, color_system="truecolor",
        record=True, legacy_windows=False,
    )  # fmt: skip
    console.print(shown, end="")
    segments = [segment for segment in console._record_buffer if not segment.control]
    for line in list(Segment.split_lines(segments))[: size[1]]:
        yield [cell for segment in line for cell in _drawn(segment, colours)]


def _drawn(segment: Segment, colours: TerminalTheme) -> Iterator[Cell]:
    style = segment.style or Style()
    front, back = _colour(style.color, colours, True), _colour(style.bgcolor, colours, False)
    if style.reverse:
        front, back = back, front
    if style.dim:
        front = blend_rgb(back, front, 0.5)
    for sign in segment.text:
        yield Cell(sign, cell_len(sign), front.hex, back.hex, bool(style.bold))


def _colour(colour: Color | None, colours: TerminalTheme, foreground: bool) -> ColorTriplet:
    if colour is None or colour.is_default:
        return colours.foreground_color if foreground else colours.background_color
    return colour.get_truecolor(colours, foreground)


def _line(cells: list[Cell], top: float, ground: str) -> Iterator[str]:
    """Grounds first, then shapes, then text."""
    placed: list[tuple[float, Cell]] = []
    at = 0
    for cell in cells:
        placed.append((_PAD + at * WIDE, cell))
        at += cell.width
    yield from _grounds(placed, top, ground)
    for left, cell in placed:
        shape = _shape(cell.sign)
        if shape is not None:
            x, y, wide, high = shape
            # Half a pixel more: where two shapes meet, no ground shines through.
            yield _rect(
                left + x * WIDE, top + y * HIGH, max(wide * WIDE + 0.4, 1.1), max(high * HIGH, 1.1), cell.front
            )
    yield from _texts(placed, top)


def _shape(sign: str) -> tuple[float, float, float, float] | None:
    """Left, top, width and height in cells of a sign that is drawn as a rectangle."""
    if sign in _FROM_BELOW:
        part = _FROM_BELOW[sign]
        return 0.0, 1 - part, 1.0, part
    if sign in _FROM_LEFT:
        return 0.0, 0.0, _FROM_LEFT[sign], 1.0
    return _RULES.get(sign)


def _grounds(placed: list[tuple[float, Cell]], top: float, ground: str) -> Iterator[str]:
    for back, run in _runs(placed, lambda cell: cell.back):
        if back != ground:
            wide = sum(cell.width for _, cell in run) * WIDE
            yield _rect(run[0][0], top, wide + 0.4, HIGH + 0.4, str(back))


def _texts(placed: list[tuple[float, Cell]], top: float) -> Iterator[str]:
    for key, run in _runs(
        placed, lambda cell: (cell.front, cell.bold, cell.sign.isspace(), bool(_shape(cell.sign)))
    ):
        front, bold, blank, drawn = key
        if blank or drawn:
            continue
        text = "".join(cell.sign for _, cell in run)
        wide = sum(cell.width for _, cell in run) * WIDE
        weight = ' font-weight="bold"' if bold else ""
        yield (
            f'<text x="{run[0][0]:g}" y="{top + _BASE:g}" textLength="{wide:g}" fill="{front}"{weight}>'
            f"{escape(text)}</text>"
        )


def _runs(
    placed: Iterable[tuple[float, Cell]], key: Callable[[Cell], Key]
) -> Iterator[tuple[Key, list[tuple[float, Cell]]]]:
    """Neighbours that have the same key."""
    for found, run in itertools.groupby(placed, lambda one: key(one[1])):
        yield found, list(run)


def _rect(left: float, top: float, wide: float, high: float, colour: str) -> str:
    return f'<rect x="{left:.5g}" y="{top:.5g}" width="{wide:.4g}" height="{high:.4g}" fill="{colour}"/>'
