"""The entry: the command line, and the screens that it may ask for. It stands above both, and neither knows it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

gc.set_threshold(100_000, 10, 10)  # by default it looks some hundred times through what a start loads, for nothing

from console.cli.main import main as run_command_line  # noqa: E402 - loaded under that rule already

if TYPE_CHECKING:
    from console.cli.front import Wishes
    from console.settings.schema import Droplet, Settings


class Screens:
    """A ``console.cli.front.Front``; what it needs is loaded when it is asked for."""

    def console(self, droplets: Sequence[Droplet], settings: Settings, wishes: Wishes) -> int:
        """The console on these droplets."""
        from console.tui.run import run

        return run(droplets, settings, read_only=wishes.read_only, palette=wishes.palette, plain_signs=wishes.ascii)

    def demo(self, wishes: Wishes) -> int:
        """The console on the embedded practice droplet."""
        from console.demo.run import main as practise
        from console.settings.schema import Settings
        from console.tui.run import run

        def show(droplet: Droplet) -> int:
            return run(
                [droplet], Settings(droplets=(droplet,)), read_only=wishes.read_only, demo=True,
                palette=wishes.palette, plain_signs=wishes.ascii,
            )  # fmt: skip

        return practise(show)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; see ``console.cli.main.main``."""
    return run_command_line(argv, Screens())


if __name__ == "__main__":
    sys.exit(main())
