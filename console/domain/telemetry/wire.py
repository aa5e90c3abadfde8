"""Lines from the ``telemetry`` script (docs/wire.md 3), put together into whole documents.

The script sends the whole document now and then and what changed in between. A line that is lost or cannot be
read makes what follows worthless: nothing is shown until the next whole document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from console.domain.telemetry.kinds import RefusedError, count, flag, number
from console.domain.telemetry.merge import Document, Merge, reasons, weight
from console.domain.telemetry.shape import MAX_WEIGHT
from console.domain.telemetry.text import printable

T = TypeVar("T")

MAX_LINE = 4 << 20
"""Bytes of one line, 4 MiB."""


class LineError(ValueError):
    """A line that cannot be used; its text says why, and where in the stream."""


def parse(raw: bytes) -> dict[str, Any]:
    """One line as the JSON object it should hold.

    Raises:
        LineError: It is over 4 MiB, not UTF-8, no JSON (a half line, say), nested beyond reason, or no object.
    """
    if len(raw) > MAX_LINE:
        raise LineError(f"a line of {len(raw)} bytes came, and {MAX_LINE} are the most")
    try:
        value = json.loads(raw, parse_constant=_no_constant)
    except RecursionError:
        raise LineError("a line came that is nested too deep") from None
    except ValueError as error:
        raise LineError(f"a line came that is no JSON: {printable(str(error), 120)}") from None
    if not isinstance(value, dict):
        raise LineError("a line came that holds no JSON object")
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick of the stream with its whole document, checked: what stands in it may be trusted for its type."""

    seq: int
    time: float
    """The droplet's wall clock, Unix seconds."""
    mono: float
    """The droplet's CLOCK_BOOTTIME, seconds."""
    missed: int
    lost: bool
    """True where lines were lost on the way since the tick before."""
    doc: Document
    reasons: Mapping[str, str]
    """By JSON Pointer in the document."""


class Assembler:
    """Puts the lines of one stream together."""

    def __init__(self) -> None:
        self.problem: str | None = None
        """What was wrong with the last line that could not be used."""
        self.unusable = 0
        """Lines that could not be used, duplicates not counted."""
        self._doc: Document = {}
        self._refused: Mapping[str, str] = {}
        self._weight = 0
        self._broken = True
        """The next line builds on one that is not here: only a whole document helps."""
        self._seen = -1
        self._given: int | None = None
        self._missed = 0

    def add(self, line: Mapping[str, object]) -> Tick | None:
        """Take one line.

        Returns:
            The tick, or None for a duplicate, for a line that cannot be used (``problem`` says why), and for
            every patch after one until the next whole document.
        """
        try:
            return self._add(line)
        except (LineError, RefusedError) as error:
            self.problem = str(error)
            self.unusable += 1
            self._broken = True
            return None

    def _add(self, line: Mapping[str, object]) -> Tick | None:
        seq = _field(line, "seq", count)
        if seq <= self._seen:
            return None
        follows = seq == self._seen + 1
        self._seen = seq
        self._missed += _field(line, "missed", count) if "missed" in line else 0
        full = _field(line, "full", flag) if "full" in line else False
        if not full and (self._broken or not follows):
            raise LineError(self.problem if self._broken and self.problem else f"the lines before {seq} are lost")
        time, mono = _field(line, "time", number), _field(line, "mono", number)
        self._take(line.get("doc"), full)
        lost = 0 if self._given is None else seq - self._given - 1
        tick = Tick(
            seq=seq,
            time=float(time),
            mono=float(mono),
            missed=self._missed + lost,
            lost=lost > 0,
            doc=self._doc,
            reasons=reasons(self._doc, self._refused),
        )
        self._given, self._missed, self._broken, self.problem = seq, 0, False, None
        return tick

    def _take(self, doc: object, full: bool) -> None:
        merge = Merge({} if full else self._refused)
        merged = merge.document({} if full else self._doc, doc)
        self._weight = merge.grown if full else self._weight + merge.grown
        if self._weight > MAX_WEIGHT:
            # What was taken away since is counted only here, so that a tick costs what it brings.
            self._weight = weight(merged)
            if self._weight > MAX_WEIGHT:
                raise LineError(f"the document grew beyond {MAX_WEIGHT} values and is not kept")
        self._doc, self._refused = merged, merge.refused


def _field(line: Mapping[str, object], name: str, kind: Callable[[object], T]) -> T:
    try:
        return kind(line.get(name))
    except RefusedError as error:
        raise LineError(f"a line came whose {name} cannot be used: {error}") from None
