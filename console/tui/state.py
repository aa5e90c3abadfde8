"""What every screen can ask: the droplets, the board, and the modes in which the program runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from console.services.board import Board
from console.settings.schema import Droplet, Settings


@dataclass(slots=True)
class State:
    """Changed by the app's loop alone.

    Attributes:
        droplets: By name, in order.
        settings: All of config.yaml.
        board: What is known of them.
        read_only: Actions that may change a droplet are refused.
        demo: The droplet is the practice one; every screen says so.
        current: The droplet last opened.
        paused: The picture is held still.
    """

    droplets: Mapping[str, Droplet]
    settings: Settings
    board: Board
    read_only: bool = False
    demo: bool = False
    current: str = ""
    paused: bool = False
    folder: str = ""
    """Where exports are written; empty for the current folder."""

    @property
    def badges(self) -> tuple[str, ...]:
        """The marks in the header."""
        marks = (("DEMO", self.demo), ("READ-ONLY", self.read_only), ("PAUSED", self.paused))
        return tuple(word for word, on in marks if on)
