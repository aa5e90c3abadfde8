r"""Making hostile text printable: what a droplet sends may hold anything.

A model name with an escape sequence must not move the cursor, a container name with a bidi override must not
read as another, a 1 MB string must not fill the memory. What would act is shown as the escape that Python
would write for it (``\x1b``, ``\u202e``), in plain ASCII, so that it is seen on every terminal.
"""

from __future__ import annotations

import unicodedata

LIMIT = 512
"""Characters of a string that are kept, as in docs/wire.md 3."""

_COMBINING = 4
"""Combining marks in a row that a script may need (Vietnamese, Hebrew, Thai); what stacks higher is a prank."""

_IGNORABLE = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0000, 0xE0FFF),
)
"""Letters and marks that no terminal shows (Unicode's Default_Ignorable_Code_Point, and the blank Braille cell),
beyond the ones that ``str.isprintable`` refuses."""


def printable(text: str, limit: int = LIMIT) -> str:
    """One line of text that may be written to a terminal as it stands.

    Args:
        text: Anything, lone surrogates included.
        limit: The most characters of ``text`` to keep; a longer one is cut and ends with ``…``.

    Returns:
        Text of at most ``limit`` characters of the original, without control characters (C0, DEL, C1), line and
        paragraph separators, bidirectional overrides and isolates, zero-width characters, lone surrogates,
        unassigned code points or towers of combining marks: each of these stands as its escape. Spaces other
        than the plain one become plain.
    """
    if len(text) > limit:
        text = text[: max(limit - 1, 0)] + "…"
    if text.isascii() and text.isprintable():
        return text
    return _neutralised(text)


def _neutralised(text: str) -> str:
    out: list[str] = []
    marks = 0
    for char in text:
        if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
            marks += 1
        else:
            marks = 0
        if unicodedata.category(char) == "Zs":
            out.append(" ")
        elif char.isprintable() and marks <= _COMBINING and not _ignorable(ord(char)):
            out.append(char)
        else:
            out.append(char.encode("unicode_escape").decode("ascii"))
    return "".join(out)


def _ignorable(code: int) -> bool:
    return code >= 0x034F and any(first <= code <= last for first, last in _IGNORABLE)
