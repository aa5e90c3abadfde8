"""Something a person must have read."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.tui.modals.base import Modal
from console.tui.widgets.words import Words


class MessageModal(Modal[None]):
    """A title and a text; any of enter, escape and q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,q", "give_up", show=False)]

    def __init__(self, title: str, text: str) -> None:
        super().__init__(title)
        self._text = text

    def inside(self) -> ComposeResult:
        """See ``Modal``."""
        yield Words(self._text)
        yield Words("")
        yield Words("enter closes this", "dim")
