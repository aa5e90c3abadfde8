"""What every screen can ask: the droplets, the board, and the modes in which the program runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from console.settings.schema import Droplet, Settings

if TYPE_CHECKING:
    from console.services.board import Board, DropletView
    from console.services.forward import Forwards


@dataclass(slots=True)
class State:
    """Changed by the app's loop alone.

    Attributes:
        droplets: By name, in order.
        settings: All of config.yaml.
        read_only: Actions that may change a droplet are refused.
        demo: The droplet is the practice one; every screen says so.
        current: The droplet last opened.
        paused: The picture is held still.
        forwards: Triton's ports on this machine, by droplet and server.
    """

    droplets: Mapping[str, Droplet]
    settings: Settings
    read_only: bool = False
    demo: bool = False
    current: str = ""
    paused: bool = False
    forwards: dict[tuple[str, str], Forwards] = field(default_factory=dict)
    _board: Board | None = field(default=None, repr=False)

    @property
    def board(self) -> Board:
        """What is known of the droplets. Made when it is first asked for: the first paint needs none of it."""
        if self._board is None:
            from console.services.board import Board

            self._board = Board(self.droplets, thresholds=self.settings.thresholds)
        return self._board

    @property
    def views(self) -> list[DropletView]:
        """The board's droplets in order; empty before the board is there."""
        return [] if self._board is None else [self._board.view(name) for name in self.droplets]

    @property
    def badges(self) -> tuple[str, ...]:
        """The marks in the header."""
        marks = (("DEMO", self.demo), ("READ-ONLY", self.read_only), ("PAUSED", self.paused))
        return tuple(word for word, on in marks if on)
