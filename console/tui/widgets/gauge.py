"""A share of a whole as a bar on one line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style

from console.tui.theme import Look

_EIGHTHS = "▏▎▍▌▋▊▉█"


def gauge(share: float | None, width: int, look: Look, role: str = "graph") -> list[Segment]:
    """``width`` cells filled from the left.

    Args:
        share: 0 to 1; None draws an empty bar.
        width: Cells.
        look: Colours and signs.
        role: The filling's.
    """
    eighths = 0 if share is None else round(min(max(share, 0.0), 1.0) * width * 8)
    if share is not None and share > 0:
        eighths = max(eighths, 1)
    full, part = divmod(eighths, 8)
    signs = look.symbols
    if signs.unicode:
        filled = signs.block * full + (_EIGHTHS[part - 1] if part else "")
    else:
        filled = signs.block * (full + (part >= 4 or not full)) if eighths else ""
    rest = width - len(filled)
    found = [Segment(filled, look[role])] if filled else []
    return [*found, Segment((signs.gap if share is None else signs.across) * rest, look["line"])] if rest else found


def stacked(parts: Sequence[tuple[float, Style]], width: int, look: Look) -> list[Segment]:
    """Parts of a whole side by side, ``width`` cells in all; every part that is there has a cell at least."""
    whole = sum(value for value, _ in parts)
    if whole <= 0 or width <= 0:
        return [Segment(look.symbols.across * width, look["line"])]
    cells = [max(round(value / whole * width), 1) if value > 0 else 0 for value, _ in parts]
    widest = cells.index(max(cells))
    cells[widest] = max(cells[widest] + width - sum(cells), 0)
    blocks = [(look.symbols.block * count, style) for count, (_, style) in zip(cells, parts, strict=True)]
    return [Segment(text, style) for text, style in blocks if text]
