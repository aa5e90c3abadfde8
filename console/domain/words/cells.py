"""Text that fits: widths in terminal cells, cutting, padding, wrapping, and ASCII for terminals without UTF-8.

What came from a droplet goes through ``console.domain.telemetry.text.printable`` before it comes here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_ASCII = str.maketrans({"…": "...", "°": "", "µ": "u", "×": "x", "–": "-", "·": "|", "\ufffd": "?"})


def width(text: str) -> int:
    """Terminal cells that ``text`` takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def fit(text: str, cells: int) -> str:
    """``text``, cut with "…" where it is wider than ``cells``."""
    if width(text) <= cells:
        return text
    kept, used = [], 1
    for char in text:
        used += _cells(char)
        if used > cells:
            break
        kept.append(char)
    return "".join(kept) + "…"


def left(text: str, cells: int) -> str:
    """Padded on the right; wider text stays as it is."""
    return text + " " * (cells - width(text))


def right(text: str, cells: int) -> str:
    """Padded on the left; wider text stays as it is."""
    return " " * (cells - width(text)) + text


def wrap(text: str, cells: int, indent: str = "") -> list[str]:
    """Lines of at most ``cells``, broken at spaces; the first keeps its own indent, the others get ``indent``."""
    words = text.lstrip(" ").split(" ")
    line = text[: len(text) - len(text.lstrip(" "))] + words[0]
    lines: list[str] = []
    for word in words[1:]:
        if width(line) + 1 + width(word) > cells:
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}"
    return [*lines, line]


def listed(start: str, names: Sequence[str], cells: int | None) -> str:
    """``start`` with the names in one line of at most ``cells``; those without room are counted.

    Args:
        start: What stands before the first name.
        names: At least one is shown.
        cells: None shows all of them.
    """
    most = len(names) if cells is None else min(len(names), cells // 3 + 1)
    for shown in range(most, 1, -1):
        rest = len(names) - shown
        line = start + ", ".join([*names[:shown], *([f"{rest} more"] if rest else [])])
        if cells is None or width(line) <= cells:
            return line
    more = f", {len(names) - 1} more" if len(names) > 1 else ""
    return start + (names[0] if cells is None else fit(names[0], cells - width(start + more))) + more


def plain_ascii(text: str) -> str:
    """For a terminal that is not UTF-8: our own signs in ASCII, what else there is as "?"."""
    return text if text.isascii() else text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
