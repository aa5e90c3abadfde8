"""Merge patches (RFC 7396) onto a document, keeping only what may stand there.

A document is a tree of dicts that is never changed once it is made: a patch gives a new one that shares every
branch it did not touch with the old. So the document of the last tick stays what it was, and a branch that is
the same object has the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.domain.telemetry.kinds import RefusedError
from console.domain.telemetry.sample import GpuHolder
from console.domain.telemetry.shape import DOCUMENT, MAX_KEY, Branch, Many, Shape

Document = dict[str, Any]

MAX_REFUSED = 200
"""Reasons that this side keeps for what it refused; the rest is left out all the same, without a word each."""


class Merge:
    """One patch being applied. Afterwards ``refused`` and ``gone`` tell what was left out and what came back."""

    def __init__(self, refused: Mapping[str, str]) -> None:
        self.refused = dict(refused)
        self.grown = 0
        """Values that came to stand where none stood, and texts that came, in the measure of ``weight``."""

    def document(self, old: Document, patch: object) -> Document:
        """The document after ``patch``; with an empty ``old``, the whole document that was sent."""
        if not isinstance(patch, dict):
            raise RefusedError("the droplet sent a line without a document")
        merged: Document = self._branch(old, patch, DOCUMENT, "")
        return merged

    def _branch(self, old: object, patch: Mapping[str, Any], shape: Branch, place: str) -> Document:
        new = dict(old) if isinstance(old, dict) else {}
        keys, leaves = shape.keys, shape.leaves
        for name, value in patch.items():
            kind = leaves.get(name)
            if kind is not None and name in new and value is not None and not self.refused:
                # Most of every patch: a plain value that changed.
                try:
                    new[name] = kept = kind(value)
                except RefusedError as error:
                    del new[name]
                    self._refuse(point(place, name), str(error))
                else:
                    if isinstance(kept, (str, tuple)):
                        self.grown += _extent(kept)
            elif name in keys:
                self._put(new, name, value, keys[name], place, name)
        return new

    def _many(self, old: object, patch: Mapping[str, Any], shape: Many, place: str) -> Document:
        new = dict(old) if isinstance(old, dict) else {}
        for name, value in _removals_first(patch) if len(new) + len(patch) > shape.limit else patch.items():
            if len(name) > MAX_KEY:
                self._refuse(place, f"the droplet sent a name of more than {MAX_KEY} characters")
                continue
            key = name
            if shape.key is not None:
                try:
                    key = shape.key(name)
                except RefusedError as error:
                    self._refuse(place, str(error))
                    continue
            if len(new) >= shape.limit and value is not None and key not in new:
                self._refuse(place, f"more than {shape.limit} {shape.what}: the rest is left out")
                continue
            self._put(new, key, value, shape.of, place, name)
        return new

    def _put(self, new: Document, key: Any, value: object, shape: Shape, place: str, name: str) -> None:
        """Put one member, or take it away where it is null or cannot be true."""
        if value is None:
            new.pop(key, None)
            if self.refused:
                self._forget(point(place, name))
            return
        had = key in new
        try:
            if isinstance(shape, (Branch, Many)):
                new[key] = self._inner(new.get(key), value, shape, point(place, name))
                self.grown += 0 if had else 1 + _extent(key)
                return
            new[key] = kept = shape(value)
        except RefusedError as error:
            new.pop(key, None)
            self._refuse(point(place, name), str(error))
            return
        self.grown += _extent(kept) + (0 if had else 1 + _extent(key))
        if self.refused:
            self._forget(point(place, name))

    def _inner(self, old: object, value: object, shape: Branch | Many, place: str) -> Document:
        if not isinstance(value, dict):
            raise RefusedError("the droplet sent something else where an object belongs")
        if isinstance(shape, Branch):
            return self._branch(old, value, shape, place)
        return self._many(old, value, shape, place)

    def _refuse(self, place: str, reason: str) -> None:
        if place in self.refused or len(self.refused) < MAX_REFUSED:
            self.refused[place] = reason

    def _forget(self, place: str) -> None:
        """What stands at a place now, or is gone from it, was not refused."""
        self.refused.pop(place, None)


def _removals_first(patch: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """A patch's members in an order in which what comes finds the room of what goes."""
    return sorted(patch.items(), key=lambda member: member[1] is not None)


def point(place: str, name: str) -> str:
    """The JSON Pointer (RFC 6901) of a member below ``place``."""
    if "~" in name or "/" in name:
        name = name.replace("~", "~0").replace("/", "~1")
    return f"{place}/{name}"


def weight(value: object) -> int:
    """How many values a document holds, where each 32 characters of a text or a name count for one more."""
    total = 0
    rest = [value]
    while rest:
        one = rest.pop()
        total += 1
        if isinstance(one, dict):
            rest.extend(one.values())
            total += sum(_extent(key) for key in one)
        else:
            total += _extent(one)
    return total


def _extent(value: object) -> int:
    """What a text or a list weighs beyond being one value."""
    if isinstance(value, str):
        return len(value) >> 5
    if isinstance(value, tuple):
        return sum(1 + _extent(one) for one in value)
    if isinstance(value, GpuHolder):
        return sum(1 + _extent(getattr(value, name)) for name in GpuHolder.__slots__)
    return 0


def reasons(document: Document, refused: Mapping[str, str]) -> Mapping[str, str]:
    """Why what is not in the document is not there, by JSON Pointer: the droplet's reasons and this side's own."""
    told: Mapping[str, str] = document.get("unavailable", {})
    return {**told, **refused} if refused else told
