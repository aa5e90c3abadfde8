"""Windows between two ticks, and what may be said about a counter in them.

A rate is over the droplet's own monotonic clock. Where there is no window (the first tick, a restart, lost
lines) there is no figure, but a gap with its reason: never a negative, never a spike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHORTEST = 0.05
"""Seconds; the script's shortest interval is 0.1. Below this, rates are noise."""

FIRST = "the first sample: a rate needs two"
STREAM = "the stream started anew"
REBOOT = "reset: the droplet was restarted"
LOST = "lines from the droplet were lost"
CLOCK = "the droplet's monotonic clock went back or stood still"
NOT_BEFORE = "the previous sample has no such figure"
SHORT = "too little time since the previous sample"


@dataclass(frozen=True, slots=True)
class Window:
    """The time between the tick that figures are counted from and this one."""

    seconds: float
    """Above 0 where ``gap`` is None."""
    gap: str | None = None
    """Why there are no figures for this window."""


def rate(now: float | None, before: float | None, seconds: float) -> float | None:
    """A counter's growth per second; None where either end is unknown or the counter went back."""
    if now is None or before is None or now < before:
        return None
    return (now - before) / seconds


def grown(now: Mapping[str, Any], before: Mapping[str, Any], name: str) -> int | None:
    """How much a counter grew; None where either end is unknown."""
    last, first = now.get(name), before.get(name)
    return None if last is None or first is None else int(last - first)


def went_back(now: Mapping[str, Any], before: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of the counters that is smaller than it was, by name."""
    for name in names:
        first = before.get(name)
        if first is not None:
            last = now.get(name)
            if last is not None and last < first:
                return name
    return None
