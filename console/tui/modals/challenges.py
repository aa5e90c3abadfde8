"""Keyboard-interactive: the server's own questions, a second factor for example."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Input

from console.remote.prompts import Challenge
from console.tui.modals.base import Modal
from console.tui.widgets.words import Words


class ChallengesModal(Modal[list[str]]):
    """A field for each question; enter goes to the next one, and at the last sends all; escape declines."""

    def __init__(self, user: str, host: str, title: str, challenges: tuple[Challenge, ...]) -> None:
        super().__init__(f"{host} asks {user}" + (f": {title}" if title else ""))
        self._challenges = challenges
        self._fields: list[Input] = []

    def inside(self) -> ComposeResult:
        """See ``Modal``."""
        for challenge in self._challenges:
            yield Words(challenge.text)
            field = Input(password=not challenge.echo, select_on_focus=False)
            field.cursor_blink = False
            self._fields.append(field)
            yield field
        yield Words("enter sends it; escape does not log in", "dim")

    def on_mount(self) -> None:
        """Type at once; a message without a question only wants to have been read."""
        if self._fields:
            self._fields[0].focus()
        else:
            self.answer([])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        place = self._fields.index(event.input)
        if place + 1 < len(self._fields):
            self._fields[place + 1].focus()
            return
        answers = [field.value for field in self._fields]
        for field in self._fields:
            field.value = ""
        self.answer(answers)
