"""Lines out of a script's output: decompressed as they come, and bounded whatever comes."""

from __future__ import annotations

import zlib
from collections import deque

MAX_LINE = 4 << 20
"""Bytes of one line (docs/wire.md 3)."""
MAX_EMPTY = 1 << 16
"""Empty lines in a row; no script of ours sends any, and 64 KiB of zlib can hold 64 MiB of them."""
_STEP = 1 << 16


class LineReader:
    """Takes bytes, gives whole lines without their newlines. Empty lines are left out.

    Args:
        compressed: The bytes are one zlib stream.
    """

    def __init__(self, *, compressed: bool) -> None:
        self._inflate = zlib.decompressobj() if compressed else None
        self._packed = b""
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._empty = 0

    @property
    def rest(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._rest)

    def feed(self, data: bytes) -> None:
        """Take what came."""
        self._packed += data

    def pop(self) -> bytes | None:
        """The next line, None where it is not whole yet.

        Raises:
            ValueError: A line longer than 4 MiB, nothing but empty lines, or no zlib stream.
        """
        # Inflated step by step and only as far as lines are wanted: 4 KiB can hold 4 MiB.
        while not self._lines and self._packed:
            self._split(self._step())
        return self._lines.popleft() if self._lines else None

    def _step(self) -> bytes:
        """Some of what came, inflated."""
        if self._inflate is None:
            data, self._packed = self._packed, b""
            return data
        try:
            data = self._inflate.decompress(self._packed, _STEP)
        except zlib.error as error:
            raise ValueError(f"it sent no zlib stream: {error}") from error
        self._packed = self._inflate.unconsumed_tail
        if self._inflate.eof:
            raise ValueError("its zlib stream ended")  # no script ends it, so what follows is not ours
        return data

    def _split(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for part in whole:
            if part or self._rest:
                self._grow(part)
                self._lines.append(bytes(self._rest))
                self._rest.clear()
                self._empty = 0
            else:
                self._empty += 1
        if self._empty > MAX_EMPTY:
            raise ValueError("it sent empty lines without end")
        self._grow(rest)

    def _grow(self, part: bytes) -> None:
        if len(self._rest) + len(part) >= MAX_LINE:
            raise ValueError(f"it sent a line of more than {MAX_LINE} bytes")
        self._rest += part
