"""Authentication by what a person types: passwords and keyboard-interactive dialogues (second factors)."""

from __future__ import annotations

import re

from console.domain.telemetry.text import printable
from console.remote.authentication.userauth import Dialogue, Failure, Success, Wanted
from console.remote.login.exchange import Exchange
from console.remote.prompts import Challenge

TYPED_TRIES = 3
"""As ssh's NumberOfPasswordPrompts."""
_MAX_TURNS = 10
_PASSWORD = re.compile(r"^\s*(\(.*\)\s*)?password( for \S+)?:?\s*$", re.IGNORECASE)
"""PAM's own prompt, whose answer can be given again at a reconnect; a second factor's can not."""


class Dialogues:
    """What is typed for one login.

    Attributes:
        refused: Something typed was wrong.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._target = exchange.target
        self._tries = {"password": TYPED_TRIES, "interactive": TYPED_TRIES}
        self._remembered = exchange.memory.password(exchange.target)
        self._password: str | None = None
        self._expired = False
        self._typed = False
        self.refused = False

    def expired_note(self) -> str:
        """For the sentence on a refusal: that the password has expired, if it has."""
        return ": the password has expired, and only an interactive ssh can set a new one" if self._expired else ""

    def remember(self) -> None:
        """The login succeeded: keep the password that was right."""
        if self._password is not None:
            self._exchange.memory.keep_password(self._target, self._password)

    def password(self) -> Success | Failure | None:
        """Send the password; None when no (other) one is given."""
        if self._tries["password"] == 0:
            return None
        self._tries["password"] -= 1
        self._password = self._next_password()
        if self._password is None:
            return None
        answer = self._exchange.auth.password(self._password, self._exchange.deadline.remaining())
        if isinstance(answer, Wanted):
            self._expired = self.refused = True
            return None
        self._judge(answer)
        return answer

    def _next_password(self) -> str | None:
        """The remembered password once, then what the person types."""
        if self._remembered is not None:
            password, self._remembered = self._remembered, None
            return password
        with self._exchange.asking():
            return self._exchange.prompter.password(self._target.user, self._target.host, again=self.refused)

    def interactive(self) -> Success | Failure | None:
        """Go through a dialogue; None when the person declines."""
        if self._tries["interactive"] == 0:
            return None
        self._tries["interactive"] -= 1
        self._typed = False
        answer = self._exchange.auth.interactive(self._exchange.deadline.remaining())
        for _ in range(_MAX_TURNS):
            if not isinstance(answer, Dialogue):
                if isinstance(answer, Failure) and not self._typed and not answer.partial:
                    return self._no_questions(answer)
                self._judge(answer)
                return answer
            answers = self._answers(answer)
            if answers is None:
                return None
            answer = self._exchange.auth.answer(answers, self._exchange.deadline.remaining())
        return None

    def _no_questions(self, answer: Failure) -> Failure:
        """The server offers dialogues but asked nothing: it would ask nothing again."""
        self._tries["interactive"] = 0
        return answer

    def _answers(self, dialogue: Dialogue) -> list[str] | None:
        if not dialogue.prompts:
            return []
        only = dialogue.prompts[0] if len(dialogue.prompts) == 1 else None
        wants_password = only is not None and not only[1] and bool(_PASSWORD.match(only[0]))
        self._typed = True
        if wants_password and self._remembered is not None:
            self._password, self._remembered = self._remembered, None
            return [self._password]
        title = " ".join(printable(part, 500) for part in (dialogue.title, dialogue.instruction) if part)
        challenges = tuple(Challenge(printable(text.strip(), 200), echo) for text, echo in dialogue.prompts)
        with self._exchange.asking():
            answers = self._exchange.prompter.challenges(self._target.user, self._target.host, title, challenges)
        if answers is None or len(answers) != len(challenges):
            return None
        if wants_password:
            self._password = answers[0]
        return answers

    def _judge(self, answer: Success | Failure) -> None:
        if isinstance(answer, Failure) and not answer.partial:
            self.refused = True
            self._password = None
            self._exchange.memory.keep_password(self._target, None)
