"""Runs the console: watches droplets, shows the screens, and gives the terminal back however it ends."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING

from console.settings.schema import Droplet, Settings
from console.tui import theme
from console.tui.app import ConsoleApp
from console.tui.bridge import Bridge, Watching
from console.tui.driver import TerminalDriver
from console.tui.state import State

if TYPE_CHECKING:
    from console.remote.prompts import Prompter
    from console.tui.prompter import ScreenPrompter

GRACE_S = 2.0
"""After a signal the program has this long to end in order; then it ends as it is, the terminal restored."""
_MODES_OFF = (1000, 1002, 1003, 1006, 1015, 1016, 2004, 2048, 1004, 1049)
_RESTORE = "\x1b[<u" + "".join(f"\x1b[?{mode}l" for mode in _MODES_OFF) + "\x1b[?7h\x1b[?25h\x1b[0m"
"""Keyboard protocol, mouse, paste, size and focus reports and the alternate screen off; wrapping and cursor on."""


def run(
    droplets: Sequence[Droplet],
    settings: Settings,
    *,
    read_only: bool = False,
    demo: bool = False,
    palette: str | None = None,
    plain_signs: bool = False,
    open_watch: Callable[[Prompter], Watching] | None = None,
) -> int:
    """Show the console until it is quit.

    Args:
        droplets: Those that are watched; a single one is opened at once.
        settings: All of config.yaml.
        read_only: Refuse whatever would change a droplet.
        demo: Say DEMO on every screen.
        palette: The colours, one of ``console.tui.theme.NAMES``; by the terminal where None.
        plain_signs: ASCII only, whatever the locale says.
        open_watch: Begins to watch; None: over the lines that the settings describe.

    Returns:
        The exit status: 0 when quit, 128 + the signal that ended it.
    """
    state = State(
        droplets={droplet.name: droplet for droplet in droplets},
        settings=settings,
        read_only=read_only,
        demo=demo,
        current=droplets[0].name if len(droplets) == 1 else "",
    )
    prompters: list[ScreenPrompter] = []

    def begin() -> Watching:
        from console.tui.prompter import ScreenPrompter

        sys.setswitchinterval(
            0.001
        )  # keys wait for the threads that watch; by default up to 5 ms at each hand-over
        gc.freeze()  # what the start made stays; no need to look through it again and again
        prompters.append(ScreenPrompter(app))
        return open_watch(prompters[0]) if open_watch is not None else _watch(droplets, prompters[0])

    bridge = Bridge(begin)
    app = ConsoleApp(
        state, bridge, theme.choose(os.environ, palette, plain=plain_signs), driver_class=TerminalDriver
    )
    try:
        with _ends_on_signals(app):
            status = app.run()
    finally:
        for prompter in prompters:
            prompter.close()
        bridge.close()
    return app.return_code or status or 0


def _watch(droplets: Sequence[Droplet], prompter: Prompter) -> Watching:
    from console.services.watching import watch

    watching = watch(droplets, prompter=prompter)
    watching.__enter__()
    return watching


@contextlib.contextmanager
def _ends_on_signals(app: ConsoleApp) -> Iterator[None]:
    """SIGHUP, SIGTERM and SIGINT end the app in order; where that hangs, in ``GRACE_S``."""
    before = _terminal_attributes()

    def last_resort(status: int) -> None:
        _restore_terminal(before)
        os._exit(status)

    def end(number: int, _: FrameType | None) -> None:
        timer = threading.Timer(GRACE_S, last_resort, [128 + number])
        timer.daemon = True
        timer.start()
        loop = app.running_loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: app.exit(128 + number, return_code=128 + number))

    kept = {number: signal.signal(number, end) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _terminal_attributes() -> list[object] | None:
    try:
        return list(termios.tcgetattr(sys.__stdin__.fileno())) if sys.__stdin__ is not None else None
    except (OSError, termios.error):
        return None


def _restore_terminal(attributes: list[object] | None) -> None:
    with contextlib.suppress(OSError, termios.error):
        if attributes is not None:
            termios.tcsetattr(0, termios.TCSANOW, attributes)  # type: ignore[arg-type]
        os.set_blocking(2, False)
        os.write(2, _RESTORE.encode())
