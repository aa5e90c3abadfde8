"""Reading a document that cannot be trusted: the right type or nothing, strings printable, lists bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from console.domain.facts.model import RawText
from console.domain.telemetry.text import printable

MAX_RAW = 1 << 20
_MAX_WHOLE = 1 << 63
_MAX_ODD = 200
_Kind = TypeVar("_Kind")


class Place:
    """A place in the document. What has the wrong type there reads as missing, and is noted.

    Args:
        value: What stands there.
        pointer: The place's JSON Pointer.
        odd: Where wrong types are noted, pointer to reason.
    """

    __slots__ = ("_odd", "_value", "pointer")

    def __init__(self, value: Any, pointer: str, odd: dict[str, str]) -> None:
        self._odd = odd
        self.pointer = pointer
        self._value: dict[str, Any] = value if isinstance(value, dict) else {}
        if value is not None and not isinstance(value, dict):
            self._note(pointer, "an object")

    def has(self, key: str) -> bool:
        """Something stands under ``key``."""
        return self._value.get(key) is not None

    def keys(self, limit: int) -> Iterator[str]:
        """The keys, at most ``limit``."""
        yield from list(self._value)[:limit]

    def text(self, key: str) -> str | None:
        """A printable text of at most 512 characters; None where it is missing or empty."""
        value = self._get(key, str, "a text")
        return printable(value) or None if value is not None else None

    def raw(self, key: str) -> RawText | None:
        """A text as it came, of at most 1 MiB."""
        value = self._get(key, str, "a text")
        if value is None:
            return None
        # A lone surrogate, which no text that was UTF-8 holds, could be written nowhere.
        return RawText(value[:MAX_RAW].encode("utf-8", "replace").decode("utf-8"))

    def whole(self, key: str) -> int | None:
        """A whole number from 0 to 2^63."""
        value = self._get(key, int, "a whole number")
        if value is not None and not 0 <= value < _MAX_WHOLE:
            self._note(self._at(key), "a whole number")
            return None
        return value

    def status(self, key: str) -> int | None:
        """An exit status: negative where a signal ended the process."""
        value = self._get(key, int, "an exit status")
        return value if value is not None and -128 <= value <= 255 else None

    def number(self, key: str) -> float | None:
        """A number within what a clock or a size can be."""
        value = self._value.get(key)
        if value is None:
            return None
        if type(value) not in (int, float) or not abs(value) < _MAX_WHOLE:
            self._note(self._at(key), "a number")
            return None
        return float(value)

    def flag(self, key: str) -> bool | None:
        """True or false."""
        return self._get(key, bool, "true or false")

    def texts(self, key: str, limit: int = 256) -> tuple[str, ...]:
        """A list of printable texts."""
        values = self._get(key, list, "a list") or []
        return tuple(printable(value) for value in values[:limit] if isinstance(value, str))

    def wholes(self, key: str, limit: int = 64) -> tuple[int, ...]:
        """A list of whole numbers."""
        values = self._get(key, list, "a list") or []
        return tuple(value for value in values[:limit] if type(value) is int and 0 <= value < _MAX_WHOLE)

    def child(self, key: str) -> Place:
        """The object under ``key``; an empty one where there is none."""
        return Place(self._value.get(key), self._at(key), self._odd)

    def children(self, key: str, limit: int) -> list[Place]:
        """The objects in the list under ``key``."""
        values = self._get(key, list, "a list") or []
        here = self._at(key)
        return [Place(value, f"{here}/{number}", self._odd) for number, value in enumerate(values[:limit])]

    def _get(self, key: str, kind: type[_Kind], wanted: str) -> _Kind | None:
        value = self._value.get(key)
        if value is None:
            return None
        if type(value) is not kind:  # not isinstance: True is no number
            self._note(self._at(key), wanted)
            return None
        return value

    def _at(self, key: str) -> str:
        return f"{self.pointer}/{printable(key).replace('~', '~0').replace('/', '~1')}"

    def _note(self, pointer: str, wanted: str) -> None:
        if len(self._odd) < _MAX_ODD:
            self._odd.setdefault(pointer, f"the droplet sent something else than {wanted}")
