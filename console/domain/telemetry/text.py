r"""Making hostile text printable: what a droplet sends may hold anything.

A model name with an escape sequence must not move the cursor, a container name with a bidi override must not
read as another, a 1 MB string must not fill the memory. What would act is shown as the escape that Python
would write for it (``\x1b``, ``\u202e``), in plain ASCII, so that it is seen on every terminal.
"""

from __future__ import annotations

import re
import unicodedata

LIMIT = 512
"""Characters of a string that are kept, as in docs/wire.md 3."""

_COMBINING = 4
"""Combining marks in a row that a script may need (Vietnamese, Hebrew, Thai); what stacks higher is a prank."""

_REMEMBERED = 10_000
"""Code points whose form is remembered; a text that goes through all of Unicode shall not fill the memory."""
_MARK = "\x00"
"""Stands before each combining mark for a moment; no NUL is left in a text by then."""
_TOWER = re.compile(f"((?:{_MARK}.){{{_COMBINING}}})((?:{_MARK}.)+)", re.DOTALL)

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
        limit: The most characters to give back; what is longer is cut and ends with ``…``.

    Returns:
        Text of at most ``limit`` characters, escapes included, without control characters (C0, DEL, C1), line and
        paragraph separators, bidirectional overrides and isolates, zero-width characters, lone surrogates,
        unassigned code points or towers of combining marks: each of these stands as its escape. Spaces other
        than the plain one become plain.
    """
    whole = len(text) <= limit
    if not whole:
        text = text[:limit]
    if not (text.isascii() and text.isprintable()):
        text = text.translate(_SHOWN)
        if _MARK in text:
            text = _TOWER.sub(_cut_down, text).replace(_MARK, "")
        whole = whole and len(text) <= limit
    return text if whole else text[: max(limit - 1, 0)] + "…"


class _Shown(dict[int, str]):
    """What is shown for a code point, found out once for each; a combining mark comes with ``_MARK`` before it."""

    def __missing__(self, code: int) -> str:
        if len(self) >= _REMEMBERED:
            self.clear()
        self[code] = shown = _shown(chr(code))
        return shown


def _shown(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Zs":
        return " "
    if not char.isprintable() or any(first <= ord(char) <= last for first, last in _IGNORABLE):
        return char.encode("unicode_escape").decode("ascii")
    return _MARK + char if category in ("Mn", "Me") else char


def _cut_down(tower: re.Match[str]) -> str:
    above = tower[2].replace(_MARK, "")
    return tower[1] + above.encode("unicode_escape").decode("ascii")


_SHOWN = _Shown()
