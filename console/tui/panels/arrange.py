"""Where the panels of Overview stand on a terminal of a given size; what matters less goes first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

FOUR = ("hit_rate", "rps", "errors", "dram")
ABREAST_FROM = 160
"""Cells from which the four stand in one row, and the rest in two columns."""
COLUMNS_FROM = 110
_TALL, _FLAT = 18, 5
"""Lines of one of the four, at most and at least."""
_LATENCY = 6
"""Lines of a useful graph of the latency."""
_GAP = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where a panel stands, in cells from the upper left."""

    panel: str
    x: int
    y: int
    width: int
    height: int

    def holds(self, x: int, y: int) -> bool:
        """Whether a cell is in it."""
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height


def arrange(width: int, height: int, wanted: Mapping[str, int], large: str | None = None) -> list[Place]:
    """The places of all panels that have room.

    Args:
        width: Cells.
        height: Lines, without the header, the detail line and the footer.
        wanted: Lines that "status", "models", "gpus", "host" and "changes" would fill.
        large: The panel that is to have all the room below the status; None for all of them.
    """
    top = min(wanted["status"], max(height - 6, 1)) if height > 8 else 1
    status = Place("status", 0, 0, width, top)
    rest = height - top
    if rest <= 1:
        return [status]
    if large is not None and large != "status":
        return [status, Place(large, 0, top, width, rest)]
    if width >= ABREAST_FROM:
        four, used = _abreast(width, top, rest, wanted)
    else:
        four, used = _two_by_two(width, top, rest, wanted)
    below = _columns if width >= COLUMNS_FROM else _stack
    places = [status, *four, *below(width, top + used, rest - used, wanted)]
    return [replace(place, height=min(place.height, height - place.y)) for place in places if place.y < height]


def _abreast(width: int, y: int, rest: int, wanted: Mapping[str, int]) -> tuple[list[Place], int]:
    below = max(wanted["models"] + wanted["gpus"] + 1, 16 + min(wanted["changes"], 7))
    each = min(max(rest - below - 1, rest * 2 // 5, _FLAT), _TALL)
    cell = (width - 3 * _GAP) // 4
    return [Place(panel, number * (cell + _GAP), y, cell, each) for number, panel in enumerate(FOUR)], each + 1


def _two_by_two(width: int, y: int, rest: int, wanted: Mapping[str, int]) -> tuple[list[Place], int]:
    """Two rows of two; as high as what stands below leaves, within reason."""
    below = 2 + min(wanted["models"], 4) + min(wanted["gpus"], 3) + 2
    if width >= COLUMNS_FROM:
        below = max(wanted["models"] + wanted["gpus"] + 1, 15)
    each = min(max((rest - below) // 2, rest // 4, _FLAT), _TALL - 6)
    if rest < 2 * _FLAT:
        each = max(rest // 2, 1)
    cell = (width - _GAP) // 2
    places = [
        Place(panel, (number % 2) * (cell + _GAP), y + (number // 2) * each, cell, each)
        for number, panel in enumerate(FOUR)
    ]
    return places, 2 * each


def _stack(width: int, y: int, rest: int, wanted: Mapping[str, int]) -> list[Place]:
    """One below the other: a line of latency and of the host, the lists, what is left for the changes."""
    heights = {"latency": 1, "models": 0, "gpus": 0, "host": 0, "changes": 0}
    left = rest - 1
    for panel, least in (("models", 3), ("gpus", 2), ("changes", 1), ("host", 1)):
        if left >= least:
            heights[panel] = least
            left -= least
    for panel in ("models", "gpus", "changes"):
        more = min(max(wanted[panel] - heights[panel], 0), left) if heights[panel] else 0
        heights[panel] += more
        left -= more
    places = []
    for panel, height in heights.items():
        if height:
            places.append(Place(panel, 0, y, width, height))
            y += height
    return places


def _columns(width: int, y: int, rest: int, wanted: Mapping[str, int]) -> list[Place]:
    """Lists at the left, latency and host at the right, the changes where there is more room."""
    if rest < 3:
        return [Place("latency", 0, y, width, rest)] if rest > 0 else []
    left = (width - _GAP) * 3 // 5
    at, right = left + _GAP, width - _GAP - left
    gpus = min(wanted["gpus"], max(rest // 3, 2))
    models = max(min(wanted["models"], rest - gpus - 1), 2)
    host = min(wanted["host"], 5) if rest >= 11 else 1
    gap = 1 if rest >= 14 else 0
    free_left = rest - models - gpus - 2
    free_right = rest - host - 2 * gap - _LATENCY
    lists = [Place("models", 0, y, left, models), Place("gpus", 0, y + models + 1, left, rest - models - 1)]
    if free_left >= max(free_right, 2):
        latency = rest - host - gap
        lists[1] = Place("gpus", 0, y + models + 1, left, gpus)
        changes = Place("changes", 0, y + models + gpus + 2, left, free_left)
    else:
        latency = max(
            min(free_right + _LATENCY - min(wanted["changes"], 6), rest // 2), min(_LATENCY, rest // 3), 1
        )
        used = latency + host + 2 * gap
        changes = Place("changes", at, y + used, right, rest - used)
    places = [
        *lists,
        Place("latency", at, y, right, latency),
        Place("host", at, y + latency + gap, right, host),
        changes,
    ]
    return [place for place in places if place.height > 0]
