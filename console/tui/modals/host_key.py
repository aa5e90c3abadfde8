"""Whether to trust a host key that is not known. No answer is easier to give by mistake than "no"."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.remote.prompts import HostKeyAnswer, HostKeyQuestion
from console.tui.modals.base import Modal
from console.tui.widgets.words import Words


class HostKeyModal(Modal[HostKeyAnswer]):
    """Shows the fingerprint; y trusts for good, o for this session, n and escape refuse."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('always')", show=False),
        Binding("o", "answer('once')", show=False),
        Binding("n,escape", "answer('refuse')", show=False),
    ]

    def __init__(self, question: HostKeyQuestion) -> None:
        super().__init__(f"The host key of {question.host} is not known")
        self._question = question

    def inside(self) -> ComposeResult:
        """See ``Modal``."""
        question = self._question
        kind = question.key_type.removeprefix("ssh-").upper()
        yield Words(f"{kind} key fingerprint:")
        yield Words(question.fingerprint, "accent")
        if question.other_types:
            known = ", ".join(question.other_types)
            yield Words("")
            yield Words(f"Keys of other types are known for it ({known}): be careful.", "warn")
        yield Words("")
        yield Words("Compare it with what the droplet's own console or your provider shows.")
        yield Words("")
        yield Words("y  trust it, also from now on")
        yield Words("o  trust it for this session only")
        yield Words("n  do not connect")

    def action_answer(self, answer: str) -> None:
        """The keys."""
        self.answer(HostKeyAnswer(answer))
