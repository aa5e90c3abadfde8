"""The app: the modes, and the timer that takes in what the droplets say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import App
from textual.driver import Driver
from textual.screen import Screen

from console.services.actions import EVENTS, FLEET, OVERVIEW
from console.tui import theme
from console.tui.bridge import Bridge
from console.tui.screens.base import ConsoleScreen
from console.tui.state import State

if TYPE_CHECKING:
    from console.domain.telemetry.totals import ModelKey

DRAIN_S = 0.2
"""What droplets say is taken in five times a second at most."""


class ConsoleApp(App[int]):
    """The console.

    Args:
        state: What all screens can ask; the app alone changes it.
        bridge: Where the droplets' events come from.
        look: Colours and signs.
        now: The clock, Unix seconds.
        driver_class: Textual's way to the terminal; None for the platform's.
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "droplet-console"

    def __init__(
        self,
        state: State,
        bridge: Bridge,
        look: theme.Look,
        *,
        now: Callable[[], float] = time.time,
        driver_class: type[Driver] | None = None,
    ) -> None:
        self.DEFAULT_MODE = OVERVIEW if state.current else FLEET  # type: ignore[misc]  # decided per run
        super().__init__(driver_class=driver_class)
        self.state = state
        self.look = look
        self.now = now
        self._bridge = bridge
        self._failure_told = False
        self._model: ModelKey | None = None
        self.running_loop: asyncio.AbstractEventLoop | None = None
        """The loop, from the moment it runs."""
        self.register_theme(theme.ground(look.name))
        # Before anything is drawn, so that nothing needs to be drawn again for it.
        self.set_reactive(App.theme, f"console-{look.name}")
        self.stylesheet.set_variables(self.get_css_variables())

    def on_load(self) -> None:
        """The loop runs: signals can end it."""
        self.running_loop = asyncio.get_running_loop()

    def get_default_screen(self) -> Screen[None]:
        """The screen that comes first. Not yet as a mode: Textual would read its style sheets twice."""
        return self._overview() if self.state.current else _fleet()

    def on_ready(self) -> None:
        """The first paint is under way: begin to watch."""
        self._modes.update({FLEET: _fleet, EVENTS: _events, OVERVIEW: self._overview})
        self.call_after_refresh(self._begin)

    @property
    def bridge(self) -> Bridge:
        """The way to the droplets that are watched."""
        return self._bridge

    def open_droplet(self, name: str, model: ModelKey | None = None) -> None:
        """Show a droplet's overview, and on it a model where one is given."""
        if name not in self.state.droplets:
            return
        if name != self.state.current or model is not None:
            self.state.current = name
            self._model = model
            self._forget_overview()
        self.show_mode(OVERVIEW)

    def show_mode(self, mode: str) -> None:
        """Change to a mode."""
        if mode == OVERVIEW and not self.state.current:
            self.state.current = next(iter(self.state.droplets), "")
        if mode != OVERVIEW or self.state.current:
            self.switch_mode(mode)

    @property
    def view_screen(self) -> ConsoleScreen | None:
        """The mode's own screen, under whatever question stands in front."""
        for screen in self.screen_stack:
            if isinstance(screen, ConsoleScreen):
                return screen
        return None

    def update_screen(self) -> None:
        """Show everything again, at once: a mode changed."""
        screen = self.view_screen
        if screen is not None:
            screen.on_screen_resume()

    def use_look(self, look: theme.Look) -> None:
        """Draw with other colours from now on."""
        self.look = look
        self.register_theme(theme.ground(look.name))
        self.theme = f"console-{look.name}"
        for stack in self._screen_stacks.values():
            for screen in stack:
                if isinstance(screen, ConsoleScreen):
                    screen.repaint()

    def retry(self, names: list[str]) -> None:
        """Try to reach droplets now."""
        for name in names:
            self._bridge.retry(name)

    def _fatal_error(self) -> None:
        """Textual's, without the variables' values: what was typed into a dialogue must not be printed."""
        from rich.segment import Segments
        from rich.traceback import Traceback

        self.bell()
        traceback = Traceback(show_locals=False, width=None)
        self._exit_renderables.append(Segments(self.console.render(traceback, self.console.options)))
        self._close_messages_no_wait()

    def _begin(self) -> None:
        self._bridge.start()
        self.set_interval(DRAIN_S, self._drain)
        self.set_interval(1.0, self._tick)

    def _drain(self) -> None:
        changed = set()
        for event in self._bridge.drain():
            changed.add(self.state.board.feed(event).droplet)
        if self._bridge.failure is not None and not self._failure_told:
            self._failure_told = True
            self._tell_failure(self._bridge.failure)
        screen = self.view_screen
        if screen is not None and changed and not self.state.paused:
            screen.update_from(changed, self.now())

    def _tick(self) -> None:
        screen = self.view_screen
        if screen is not None:
            screen.tick(self.now())

    def _tell_failure(self, error: Exception) -> None:
        from console.tui.modals.message import MessageModal

        hint = getattr(error, "hint", None)
        self.push_screen(MessageModal("No droplet can be watched", f"{error}" + (f"\n{hint}" if hint else "")))

    def _forget_overview(self) -> None:
        if self.current_mode == OVERVIEW:
            self.switch_mode(FLEET)
        self.remove_mode(OVERVIEW)
        self.add_mode(OVERVIEW, self._overview)

    def _overview(self) -> Screen[None]:
        from console.tui.screens.overview import OverviewScreen

        return OverviewScreen(self.state.current, self._model)


def _fleet() -> Screen[None]:
    from console.tui.screens.fleet import FleetScreen

    return FleetScreen()


def _events() -> Screen[None]:
    from console.tui.screens.events import EventsScreen

    return EventsScreen()
