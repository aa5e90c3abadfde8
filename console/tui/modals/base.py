"""The frame of what stands in front of a screen: a box in the middle, closed by escape."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from console.tui.widgets.words import Words

Answer = TypeVar("Answer")


class Modal(ModalScreen[Answer]):
    """A question or a message; subclasses compose what stands under the title in ``inside``."""

    DEFAULT_CSS = """
    Modal { align: center middle; background: $background 60%; }
    Modal > Vertical {
        width: 76; max-width: 96%; height: auto; max-height: 90%; padding: 1 2;
        border: round $primary; background: $background;
    }
    Modal Input { border: none; height: 1; padding: 0; margin: 1 0; background: $foreground 12%; }
    Modal Input:focus { border: none; background: $foreground 16%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "give_up", show=False),
        Binding("ctrl+c,ctrl+q", "app.quit", show=False, priority=True),
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._answered = False

    def inside(self) -> ComposeResult:
        """What stands under the title."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """See Textual."""
        with Vertical():
            yield Words(self._title, "strong")
            yield Words("")
            yield from self.inside()

    def action_give_up(self) -> None:
        """Escape: no answer."""
        self.answer(None)

    def answer(self, given: Answer | None) -> None:
        """Close with an answer. Keys that were typed ahead come twice; only the first counts."""
        if not self._answered and self.is_current:
            self._answered = True
            self.dismiss(given)
