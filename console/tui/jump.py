"""Where ":" can jump to: droplets by name, and models by name on the droplet that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.domain.telemetry.totals import ModelKey
from console.services.board import Board

MOST = 12
"""Suggestions that are shown at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere to jump.

    Attributes:
        name: As it is typed: "gpu-prod", or "resnet@gpu-prod" for a model.
        droplet: The droplet that is opened.
        model: The model that is looked at there; None for all of them.
    """

    name: str
    droplet: str
    model: ModelKey | None = None


def places(board: Board) -> list[Place]:
    """Everything that can be jumped to; droplets first."""
    found = [Place(name, name) for name in board.droplets]
    for name in board.droplets:
        sample = board.view(name).sample
        if sample is None:
            continue
        models = {
            f"{model.name}@{name}": ModelKey(server.name, model.name, model.version)
            for server in sample.servers
            for model in server.models
            if model.state == "READY"
        }
        found += [Place(word, name, key) for word, key in sorted(models.items())]
    return found


def suggestions(known: Sequence[Place], text: str) -> list[Place]:
    """What fits ``text`` best, the best first: its beginning, then any part, then its letters in order."""
    wanted = text.strip().casefold()
    ranked = []
    for number, place in enumerate(known):
        name = place.name.casefold()
        if name.startswith(wanted):
            ranked.append((0, number, place))
        elif wanted in name:
            ranked.append((1, number, place))
        elif _scattered(wanted, name):
            ranked.append((2, number, place))
    ranked.sort(key=lambda one: one[:2])
    return [place for _, _, place in ranked[:MOST]]


def _scattered(wanted: str, name: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in wanted)
