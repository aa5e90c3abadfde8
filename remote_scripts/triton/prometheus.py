"""Prometheus' text format, fast for a page that is read every second and robust to whatever stands in it.

https://prometheus.io/docs/instrumenting/exposition_formats/; OpenMetrics' exemplars and timestamps are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Target = TypeVar("Target")

CACHE_LIMIT = 20_000
"""Series whose meaning is remembered between pages; more are understood anew each time."""
CACHE_BYTES = 3 << 20
"""Of those series' texts together: labels may be as long as a line."""
_LINE_LIMIT = 8 << 10
_ESCAPES = {"\\": "\\", '"': '"', "n": "\n"}


class Page(Generic[Target]):
    """Reads page after page of one endpoint.

    Args:
        classify: says what a series means to the reader, from its name, its labels, and its text as it stands on
            the page; None for nothing.

    Attributes:
        garbage: lines of the last page that are no sample.
    """

    def __init__(self, classify: Callable[[str, dict[str, str], str], Target | None]) -> None:
        self._classify = classify
        self._known: dict[bytes, Target | None] = {}
        self._known_bytes = 0
        self.garbage = 0

    def read(self, text: bytes) -> Iterator[tuple[Target, float]]:
        """What is on the page: each series that means something, with its value (which may be NaN or infinite)."""
        self.garbage = 0
        known = self._known
        if self._full():
            known.clear()
            self._known_bytes = 0
        for line in text.split(b"\n"):
            key, _, value = line.rpartition(b" ")
            try:
                target = known[key]
                if target is not None:
                    yield target, float(value)
            except (KeyError, ValueError):
                found = self._understand(line, key)
                if found is not None:
                    yield found

    def _understand(self, line: bytes, key: bytes) -> tuple[Target, float] | None:
        stripped = line.strip()
        if not stripped or stripped[0] == 35:  # "#": HELP, TYPE, EOF, a comment
            return None
        sample = split_sample(stripped.decode("utf-8", "replace")) if len(stripped) <= _LINE_LIMIT else None
        if sample is None:
            self.garbage += 1
            return None
        name, labels, series, value = sample
        target = self._classify(name, labels, series)
        # Only where nothing follows the value is the text before the last blank the series.
        if not self._full() and key.decode("utf-8", "replace") == series:
            self._known[key] = target
            self._known_bytes += len(key)
        return None if target is None else (target, value)

    def _full(self) -> bool:
        return len(self._known) > CACHE_LIMIT or self._known_bytes > CACHE_BYTES


def split_sample(line: str) -> tuple[str, dict[str, str], str, float] | None:
    """One line taken apart.

    Returns:
        The name, the labels with their escapes undone, both together as they stand in the line, and the value; or
        None where the line is no sample.
    """
    brace = line.find("{")
    blank = line.find(" ")
    labels: dict[str, str] = {}
    if brace >= 0 and (blank < 0 or brace < blank or not line[blank:brace].strip()):
        name = line[:brace].rstrip()
        end = _read_labels(line, brace + 1, labels)
        if end < 0:
            return None
    else:
        end = blank
        name = line[:end] if end > 0 else ""
    words = line[end:].split(None, 1)
    if not name or not words:
        return None
    try:
        return name, labels, line[:end], float(words[0])
    except ValueError:
        return None


def _read_labels(line: str, at: int, labels: dict[str, str]) -> int:
    """Fill ``labels`` from ``name="value",…}``; the place after the brace, or -1."""
    while True:
        while line[at : at + 1] in (",", " "):
            at += 1
        if line[at : at + 1] == "}":
            return at + 1
        equals = line.find("=", at)
        if equals < 0:
            return -1
        name = line[at:equals].strip()
        at = equals + 1
        while line[at : at + 1] == " ":
            at += 1
        if not name or line[at : at + 1] != '"':
            return -1
        at += 1
        end = line.find('"', at)
        if end < 0:
            return -1
        if "\\" not in line[at:end]:
            labels[name] = line[at:end]
            at = end + 1
            continue
        value, at = _read_escaped(line, at)
        if at < 0:
            return -1
        labels[name] = value


def _read_escaped(line: str, at: int) -> tuple[str, int]:
    """A label's value up to its closing quote, escapes undone; the place after the quote, or -1."""
    parts: list[str] = []
    while at < len(line):
        mark = line[at]
        if mark == '"':
            return "".join(parts), at + 1
        if mark == "\\" and at + 1 < len(line):
            at += 1
            parts.append(_ESCAPES.get(line[at], "\\" + line[at]))
        else:
            parts.append(mark)
        at += 1
    return "", -1
