"""Puts a login's questions to the person in front of the screens, from whatever thread asks, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from console.remote.prompts import Challenge, HostKeyAnswer, HostKeyQuestion

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

Answer = TypeVar("Answer")


class ScreenPrompter:
    """A ``console.remote.prompts.Prompter``.

    Args:
        app: The app in which questions are shown; it runs.
    """

    def __init__(self, app: App[int]) -> None:
        self._app = app
        self._alone = threading.Lock()
        self._closed = threading.Event()

    def close(self) -> None:
        """Decline the question that is open, and all that come."""
        self._closed.set()

    def host_key(self, question: HostKeyQuestion) -> HostKeyAnswer:
        """See ``Prompter``."""

        def modal() -> Screen[HostKeyAnswer]:
            from console.tui.modals.host_key import HostKeyModal

            return HostKeyModal(question)

        return self._ask(modal) or HostKeyAnswer.REFUSE

    def passphrase(self, key_file: str, *, again: bool) -> str | None:
        """See ``Prompter``."""
        return self._secret(f"Passphrase for {key_file}", again, "the key is not used")

    def password(self, user: str, host: str, *, again: bool) -> str | None:
        """See ``Prompter``."""
        return self._secret(f"Password of {user} on {host}", again, "no login")

    def challenges(self, user: str, host: str, title: str, challenges: tuple[Challenge, ...]) -> list[str] | None:
        """See ``Prompter``."""

        def modal() -> Screen[list[str]]:
            from console.tui.modals.challenges import ChallengesModal

            return ChallengesModal(user, host, title, challenges)

        return self._ask(modal)

    def sudo_password(self, user: str, host: str, *, again: bool) -> str | None:
        """See ``Prompter``."""
        return self._secret(f"sudo password of {user} on {host}", again, "what only root may read is left out")

    def _secret(self, title: str, again: bool, declined: str) -> str | None:
        def modal() -> Screen[str]:
            from console.tui.modals.secret import SecretModal

            return SecretModal(title, again=again, declined=declined)

        return self._ask(modal)

    def _ask(self, modal: Callable[[], Screen[Answer]]) -> Answer | None:
        with self._alone:
            if self._closed.is_set():
                return None
            answered = threading.Event()
            answers: list[Answer | None] = []

            def answer(given: Answer | None) -> None:
                answers.append(given)
                answered.set()

            self._app.call_later(lambda: self._app.push_screen(modal(), answer))
            while not answered.wait(0.2):
                if self._closed.is_set():
                    return None
            return answers[0]
