"""Small reads of /proc, /sys and the like, and strings cut to what may travel."""

from __future__ import annotations

import os

MAX_TEXT = 512
"""Characters of a string in the stream (docs/wire.md section 3)."""


def read_bytes(path: str, limit: int = 1 << 16) -> bytes:
    """The first ``limit`` bytes of a file, read without buffering: /proc answers in one read, as of one moment.

    Raises:
        OSError: the file is not there or may not be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        left = limit
        while left > 0:
            part = os.read(fd, left)
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def read_text(path: str, limit: int = 1 << 16) -> str:
    """As ``read_bytes``, decoded; bytes that are no UTF-8 become replacement characters."""
    return read_bytes(path, limit).decode("utf-8", "replace")


def cut(text: str) -> str:
    """``text`` at the length that may travel, with an ellipsis where something was cut off."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def pointer(*parts: str) -> str:
    """The JSON Pointer (RFC 6901) of a place in the document, its keys escaped."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def name(text: str) -> str:
    """``text`` as a key of the document: cut, and without control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:MAX_TEXT])
