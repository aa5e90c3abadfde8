"""``droplet-console demo``: starts the practice droplet, shows it, and ends it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

from console.demo.start import DemoError, start_demo
from console.settings.schema import Droplet

BANNER = (
    "DEMO: a practice droplet on this machine. Its load, its GPU and its machine are simulated, and a stand-in\n"
    "that says so speaks for Triton. It needs no root and no network; nothing outside its folder changes.\n"
)
NOT_STARTED = 5
"""Exit status where the practice droplet did not start."""


def main(show: Callable[[Droplet], int]) -> int:
    """Start the practice droplet, show it, and end it, however ``show`` ends.

    Args:
        show: Opens the console, or whatever else, on a droplet; its exit status is returned.

    Returns:
        ``show``'s exit status, or ``NOT_STARTED``.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Until the screens take them over: out through the context manager, so that nothing is left behind.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)
    sys.stderr.write(BANNER)
    try:
        with start_demo() as demo:
            return show(demo.droplet)
    except DemoError as error:
        sys.stderr.write(f"droplet-console: {error}\n")
        return NOT_STARTED


def _leave(number: int, _: object) -> None:
    raise SystemExit(128 + number)
