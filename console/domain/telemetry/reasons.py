"""Why a figure is not there: every None of a sample has its reason.

The droplet gives reasons for places in its document; a sample has other places. ``Reasons`` looks a figure's
reason up where the figure would have come from, and keeps it under the figure's own JSON Pointer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any

from console.domain.telemetry.sample import EXPLAIN_THEMSELVES

UNTOLD = "the droplet did not say"
_LISTS = ("/gpus", "/servers")


@cache
def nullable(kind: type) -> tuple[str, ...]:
    """The fields of a part of a sample that may be None and then need a reason."""
    return tuple(
        field.name
        for field in dataclasses.fields(kind)
        if "None" in str(field.type)
        and not str(field.type).startswith("Mapping")
        and field.name not in EXPLAIN_THEMSELVES
    )


@cache
def _values(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    first, second, *more = nullable(kind)  # with one name alone, attrgetter gives no tuple
    return attrgetter(first, second, *more)


class Reasons:
    """Collects the reasons of one sample in ``found``."""

    def __init__(self, wire: Mapping[str, str]) -> None:
        self.found: dict[str, str] = {}
        self._wire = wire
        self._branches: dict[str, str | None] = {}

    def of(self, place: str, name: str) -> str | None:
        """The droplet's reason for a member of a branch of its document: its own, or that of a branch above."""
        if not self._wire:
            return None
        return self._wire.get(f"{place}/{name}") or self.branch(place)

    def branch(self, place: str) -> str | None:
        """The droplet's reason for a whole branch: its own, or that of one above."""
        if not self._wire:
            return None
        known = self._branches
        if place not in known:
            reason = self._wire.get(place)
            above = place.rpartition("/")[0]
            # What stands at a list of everything speaks of what is missing in it, not of what is there.
            known[place] = self.branch("" if above in _LISTS else above) if reason is None and place else reason
        return known[place]

    def pass_on(self, pointer: str, place: str) -> None:
        """Keep the droplet's reason for a list, or for what is left out of it, where it has one."""
        reason = self._wire.get(place) if self._wire else None
        if reason is not None:
            self.found[pointer] = reason

    def exactly(self, place: str) -> str | None:
        """The droplet's reason for this very place."""
        return self._wire.get(place)

    def _told(self, place: str, source: str) -> str | None:
        """The droplet's reason for a place up to two steps below a branch, the branch itself left out."""
        wire = self._wire
        reason = wire.get(f"{place}/{source}")
        if reason is None and "/" in source:
            reason = wire.get(f"{place}/{source.partition('/')[0]}")
        return reason

    def explain(
        self,
        part: object,
        pointer: str,
        place: str,
        sources: Mapping[str, str],
        own: Mapping[str, str],
        default: str = UNTOLD,
    ) -> None:
        """Give every None of ``part`` its reason.

        Args:
            part: A part of a sample, such as a ``GpuSample``.
            pointer: Where it stands in the sample.
            place: Where its figures stand in the document.
            sources: The document's name of a figure where it has another one, relative to
                ``place``, ``cpu/user`` say.
            own: This side's reasons by field, which outrank the droplet's.
            default: What holds for the rest, before what the droplet says of the whole part.
        """
        kind: type = type(part)
        wire = self._wire
        found = self.found
        fallback = default if default != UNTOLD else self.branch(place) or default
        for name, value in zip(nullable(kind), _values(kind)(part), strict=True):
            if value is None:
                reason = own.get(name)
                if reason is None:
                    reason = self._told(place, sources.get(name, name)) or fallback if wire else default
                found[f"{pointer}/{name}"] = reason
