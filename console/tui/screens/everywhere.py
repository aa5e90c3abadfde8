"""The actions that mean the same on every screen; ``ConsoleScreen`` has them by inheritance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from console.services.actions import EVENTS, FLEET, OVERVIEW
from console.tui import theme

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from console.tui.screens.base import ConsoleScreen


class Everywhere(Screen[None]):
    """Each method is the action of that id in ``console.services.actions``."""

    @property
    def console(self) -> ConsoleApp:
        """The app."""
        return cast("ConsoleApp", self.app)

    @property
    def _here(self) -> ConsoleScreen:
        return cast("ConsoleScreen", self)

    def action_fleet(self) -> None:
        """Show the fleet."""
        self.console.show_mode(FLEET)

    def action_overview(self) -> None:
        """Show the droplet last opened; on a list, the one under the cursor where none was."""
        if not self.console.state.current and self._here.target:
            self.console.open_droplet(self._here.target)
        else:
            self.console.show_mode(OVERVIEW)

    def action_events(self) -> None:
        """Show what happened."""
        self.console.show_mode(EVENTS)

    def action_back(self) -> None:
        """Take away the filter, else go back to the fleet."""
        if self._here.filtered:
            self._here.narrow("")
            self._here.tick(self.console.now())
        else:
            self.console.show_mode(FLEET)

    async def action_filter(self) -> None:
        """Narrow the list while one types."""
        before = self._here.filtered

        def done(text: str | None) -> None:
            self._here.narrow(before if text is None else text)
            self._here.tick(self.console.now())

        await self._here.ask_line("/", before, self._here.narrow, done)

    async def action_jump(self) -> None:
        """Go to a droplet or a model by name."""
        from console.tui.jump import places, suggestions
        from console.tui.widgets.prompt_line import PromptLine

        known = places(self.console.state.board)

        def changed(text: str) -> None:
            for prompt in self.query(PromptLine):
                prompt.suggest([place.name for place in suggestions(known, text)])

        def done(text: str | None) -> None:
            found = suggestions(known, text) if text else []
            if found:
                self.console.open_droplet(found[0].droplet, found[0].model)
            elif text:
                self._here.say(f"nothing is called {text}", "warn")

        await self._here.ask_line(":", "", changed, done)

    def action_pause(self) -> None:
        """Hold the picture still, or let it run."""
        state = self.console.state
        state.paused = not state.paused
        if state.paused:
            self._here.tick(self.console.now())
        else:
            self.console.update_screen()

    def action_theme(self) -> None:
        """The next palette."""
        now = self.console.look
        name = theme.NAMES[(theme.NAMES.index(now.name) + 1) % len(theme.NAMES)]
        self.console.use_look(theme.look(name, now.symbols))
        self._here.say(f"colours: {name}")

    def action_copy(self) -> None:
        """Copy by OSC 52, which also works through SSH where the terminal allows it."""
        text = self._here.copied()
        if text:
            self.console.copy_to_clipboard(text)
            self._here.say(f"copied: {text.splitlines()[0]}")
        else:
            self._here.say("there is nothing here to copy", "warn")

    def action_retry(self) -> None:
        """Try again to reach what is marked."""
        names = self._here.targets
        self.console.retry(names)
        self._here.say(f"trying {', '.join(names)}" if names else "no droplet is chosen", "accent")

    def action_shell(self) -> None:
        """Lend the terminal to ssh."""
        from console.tui.shell import open_shell

        if self._here.target:
            self._here.say(open_shell(self.console, self.console.state.droplets[self._here.target]))
        else:
            self._here.say("no droplet is chosen", "warn")

    def action_export(self) -> None:
        """Write what is shown to files, and say where."""
        from console.services.export import write

        try:
            paths = write(Path(), self._here.export_name, self.console.now(), self._here.exported())
        except OSError as error:
            self._here.say(f"not written: {error.filename}: {error.strerror}", "bad")
            return
        self._here.say(f"written: {' and '.join(str(path) for path in paths)}", "good")

    def action_palette(self) -> None:
        """Find any action."""
        from console.tui.modals.palette import Palette

        def chosen(action: str | None) -> None:
            if action is not None:
                self.console.call_later(self.run_action, action)

        self.console.push_screen(Palette(self._here.MODE), chosen)

    def action_help(self) -> None:
        """Show the keys."""
        from console.tui.screens.help import HelpScreen

        self.console.push_screen(HelpScreen(self._here.MODE, self.console.state.read_only))

    def action_quit(self) -> None:
        """End the program."""
        self.console.exit(0)
