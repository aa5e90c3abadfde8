"""A passphrase or a password. What is typed is shown as dots, and kept nowhere here."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Input

from console.tui.modals.base import Modal
from console.tui.widgets.words import Words


class SecretModal(Modal[str]):
    """One field; enter gives what was typed, escape and an empty field give none.

    Args:
        title: What is asked for, and whose.
        again: The last one was wrong.
        declined: What follows where none is given.
    """

    def __init__(self, title: str, *, again: bool, declined: str) -> None:
        super().__init__(title)
        self._again = again
        self._declined = declined

    def inside(self) -> ComposeResult:
        """See ``Modal``."""
        if self._again:
            yield Words("That was not it.", "warn")
        field = Input(password=True, select_on_focus=False)
        field.cursor_blink = False
        yield field
        yield Words(f"enter sends it; escape: {self._declined}", "dim")
        yield Words("It stays in memory until this console ends, and is never written down.", "dim")

    def on_mount(self) -> None:
        """Type at once."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        typed = event.value
        event.input.value = ""
        self.answer(typed or None)
