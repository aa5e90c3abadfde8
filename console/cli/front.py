"""What opens the screens, given from above: the command line knows the words that ask for them, not the screens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from console.settings.schema import Droplet, Settings

PALETTES = ("dark", "light", "ansi")
"""What ``--theme`` takes: ``console.tui.theme.NAMES``."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How the screens are to be.

    Attributes:
        read_only: Refuse whatever would change a droplet.
        palette: The colours, one of ``PALETTES``; by the terminal where None.
        ascii: No signs beyond ASCII, whatever the locale says.
    """

    read_only: bool = False
    palette: str | None = None
    ascii: bool = False


class Front(Protocol):
    """Opens screens and returns the exit status when they are closed."""

    def console(self, droplets: Sequence[Droplet], settings: Settings, wishes: Wishes) -> int:
        """The console on these droplets."""

    def demo(self, wishes: Wishes) -> int:
        """The console on the embedded practice droplet."""
