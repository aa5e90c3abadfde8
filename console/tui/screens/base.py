"""What all screens share: header, footer, the keys from the table of actions, a line for messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Set
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.services.actions import on_screen
from console.tui.screens.everywhere import Everywhere
from console.tui.state import State
from console.tui.widgets.footer import Footer
from console.tui.widgets.header import Header, Heading
from console.tui.widgets.lines import Lines


def bindings(mode: str) -> list[BindingType]:
    """The keys of a screen, from the table of actions."""
    return [
        Binding(",".join(action.keys), action.id, action.title, show=False, priority=action.id == "quit")
        for action in on_screen(mode)
    ]


class ConsoleScreen(Everywhere):
    """A mode of the app. Subclasses name their ``MODE``, compose a ``body`` and say what the header says."""

    MODE: ClassVar[str]
    AUTO_FOCUS = ""

    def __init__(self) -> None:
        super().__init__()
        self._header = Header()
        self._footer = Footer(list(on_screen(self.MODE)))

    @property
    def state(self) -> State:
        """What the app knows."""
        return self.console.state

    def body(self) -> ComposeResult:
        """What stands between header and footer."""
        raise NotImplementedError

    def heading(self, now: float) -> Heading:
        """What the header says at this moment."""
        raise NotImplementedError

    def update_from(self, changed: Set[str], now: float) -> None:
        """Show what the board says.

        Args:
            changed: Names of the droplets of which something new is known; all of them when the screen comes up.
            now: Unix seconds.
        """
        raise NotImplementedError

    def narrow(self, text: str) -> None:
        """Show only what matches; screens with a list do."""

    @property
    def filtered(self) -> str:
        """The filter in force."""
        return ""

    @property
    def target(self) -> str | None:
        """The droplet that an action is about."""
        return self.state.current or None

    @property
    def targets(self) -> list[str]:
        """The droplets that an action on several is about."""
        return [self.target] if self.target else []

    def copied(self) -> str:
        """The text that "copy" takes along: what the cursor is on."""
        return ""

    @property
    def export_name(self) -> str:
        """What the files that "export" writes are named after."""
        return self.MODE

    def exported(self) -> Mapping[str, str]:
        """What "export" writes: by file ending, the text."""
        return {}

    def compose(self) -> ComposeResult:
        """See Textual."""
        yield self._header
        yield from self.body()
        yield self._footer

    def on_screen_resume(self) -> None:
        """The screen came up: show what happened meanwhile."""
        now = time.time()
        self.tick(now)
        self.update_from(frozenset(self.state.droplets), now)

    def tick(self, now: float) -> None:
        """Once a second, and where a mode changed: the header."""
        self._header.show(self.heading(now))

    def clock(self, now: float) -> str:
        """The time of day for the header."""
        return time.strftime("%H:%M:%S", time.localtime(now))

    def say(self, words: str, role: str = "accent") -> None:
        """Say something in the footer's place for a moment."""
        self._footer.say(words, role)

    def repaint(self) -> None:
        """The colours changed."""
        for lines in self.query(Lines):
            lines.repaint()

    async def ask_line(
        self, sign: str, value: str, changed: Callable[[str], None], done: Callable[[str | None], None]
    ) -> None:
        """Ask for a line of text above the footer; see ``console.tui.widgets.prompt_line``."""
        from console.tui.widgets.prompt_line import PromptLine

        if self.query(PromptLine):
            return
        prompt = PromptLine(sign, value, changed, done)
        await self.mount(prompt, before=self._footer)
        prompt.begin()
