"""One line to type in, above the footer: "/" filters while one types, ":" jumps with suggestions beside it."""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from console.tui.widgets.lines import Lines
from console.tui.widgets.strip import line, safe


class Beside(Lines):
    """What stands before and behind the place to type."""

    def __init__(self, text: str, *, classes: str) -> None:
        super().__init__(classes=classes)
        self.styles.height = 1
        self.texts = [text]

    def draw(self, width: int, height: int) -> list[Strip]:
        """See ``Lines``."""
        first, *others = [safe(text, self.symbols) for text in self.texts] or [""]
        pieces = [Segment(first, self.style("accent"))]
        pieces += [Segment("  " + other, self.style("dim")) for other in others]
        return [line(pieces, width)]


class PromptLine(Horizontal):
    """See the module.

    Args:
        sign: What stands before it.
        value: What stands in it at first.
        changed: Told what stands in it, at each change.
        done: Told what was typed when it ends; None where it was given up.
    """

    DEFAULT_CSS = """
    PromptLine { height: 1; }
    PromptLine Input { width: 1fr; max-width: 40; border: none; height: 1; padding: 0; background: transparent; }
    PromptLine Input:focus { border: none; background-tint: transparent 0%; }
    PromptLine .sign { width: 3; }
    PromptLine .suggestions { width: 1fr; }
    """

    def __init__(
        self, sign: str, value: str, changed: Callable[[str], None], done: Callable[[str | None], None]
    ) -> None:
        super().__init__()
        self._sign = sign
        self._changed = changed
        self._done = done
        self._ended = False
        self._before: Widget | None = None
        self._input = Input(value, select_on_focus=False)
        self._input.cursor_blink = False
        self._beside = Beside("", classes="suggestions")

    def compose(self) -> ComposeResult:
        """See Textual."""
        yield Beside(f" {self._sign}", classes="sign")
        yield self._input
        yield self._beside

    def begin(self) -> None:
        """Take the keys."""
        self._before = self.screen.focused
        self._input.focus()
        self._changed(self._input.value)

    def suggest(self, texts: list[str]) -> None:
        """Show suggestions, the best first."""
        self._beside.texts = texts
        self._beside.redraw()

    def on_input_changed(self, event: Input.Changed) -> None:
        """A key was typed."""
        event.stop()
        self._changed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        self._end(event.value)

    def on_key(self, event: events.Key) -> None:
        """Escape gives up, tab takes the best suggestion."""
        if event.key == "escape":
            event.stop()
            self._end(None)
        elif event.key == "tab":
            event.stop()
            event.prevent_default()
            if self._beside.texts and self._beside.texts[0]:
                self._input.value = self._beside.texts[0]
                self._input.cursor_position = len(self._input.value)

    def on_descendant_blur(self) -> None:
        """Something else was clicked: that gives up too. A terminal that loses the focus only pauses."""
        self.call_after_refresh(self._check_focus)

    def _check_focus(self) -> None:
        if self.screen.focused not in (None, self._input):
            self._end(None)

    def _end(self, value: str | None) -> None:
        if self._ended:
            return
        self._ended = True
        if self._before is not None:
            self.screen.set_focus(self._before)
        self.remove()  # not waited for: this runs in what is removed
        self._done(value)
