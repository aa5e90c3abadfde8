"""Standard output and error: colour only for a terminal, ASCII where UTF-8 would not arrive, nothing raw."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from console.domain.words.cells import plain_ascii, wrap

_SGR = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "white": "37",
}

_UNSAFE = re.compile(
    "\x1b(?!\\[[0-9;]{1,16}m)|[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""What may not reach a terminal whatever made it into a line: all but text, line ends, and colours."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command writes.

    Attributes:
        out: For the answer.
        err: For what people are told on the way.
        colour: True where ``out`` is a terminal that wants it.
        width: Cells of a line; names are not cut where ``out`` is no terminal.
        terminal: True where ``out`` is a terminal.
        unicode: True where ``out`` takes UTF-8.
    """

    out: TextIO
    err: TextIO
    colour: bool = False
    width: int = 80
    terminal: bool = False
    unicode: bool = True

    def line(self, text: str = "") -> None:
        """One line of the answer."""
        self.lines([text])

    def lines(self, texts: list[str]) -> None:
        """Lines of the answer, in one write."""
        joined = _UNSAFE.sub("\ufffd", "\n".join(texts) + "\n") if texts else ""
        self.out.write(joined if self.unicode else plain_ascii(joined))

    def document(self, value: Mapping[str, Any]) -> None:
        """One JSON document on one line. ASCII: no terminal can be harmed by it."""
        self.out.write(json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n")

    def flush(self) -> None:
        """Send what was written on its way."""
        self.out.flush()

    def tell(self, text: str) -> None:
        """One line to standard error; on a terminal wrapped at spaces, as what is on standard output."""
        text = _UNSAFE.sub("\ufffd", text)
        if self.err.isatty():
            columns = max(shutil.get_terminal_size((80, 24)).columns, 40)
            text = "\n".join(line for part in text.split("\n") for line in wrap_words(part, columns, "    "))
        safe = text if (self.err.encoding or "").lower().replace("-", "") == "utf8" else plain_ascii(text)
        self.err.write(safe + "\n")
        self.err.flush()

    def paint(self, text: str, *styles: str | None) -> str:
        """``text`` in colour or weight, where the output takes it."""
        codes = ";".join(_SGR[style] for style in styles if style)
        return f"\x1b[{codes}m{text}\x1b[0m" if self.colour and codes and text else text


def wrap_words(text: str, cells: int, indent: str = "") -> list[str]:
    """One line of a message as lines; a command to copy, which stands indented, stays whole."""
    return [text] if text.startswith("  ") else wrap(text, cells, indent)


def standard() -> Output:
    """The process's own output."""
    terminal = sys.stdout.isatty()
    colour = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM", "dumb") != "dumb"
    columns = shutil.get_terminal_size((80, 24)).columns if terminal else 80
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "").replace("_", "")
    return Output(sys.stdout, sys.stderr, colour, max(columns, 40), terminal, encoding == "utf8")
