from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from console.remote.prompts import Challenge, HostKeyAnswer, HostKeyQuestion
from console.tui.prompter import ScreenPrompter
from tests.tui.picture import text
from tests.tui.stories import stage

Given = TypeVar("Given")
FINGERPRINT = "SHA256:abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
QUESTION = HostKeyQuestion("gpu-prod", "ssh-ed25519", FINGERPRINT, ("ssh-rsa",))


def ask(question: Callable[[ScreenPrompter], Given], *keys: str) -> tuple[Given, str]:
    """What a thread that asks is told when these keys are pressed, and what was shown."""
    answers: list[Given] = []

    async def run() -> str:
        app = stage("prod", current="")
        async with app.run_test(size=(90, 30)) as pilot:
            prompter = ScreenPrompter(app)
            thread = threading.Thread(target=lambda: answers.append(question(prompter)), daemon=True)
            thread.start()
            while len(app.screen_stack) < 2:
                await pilot.pause(0.02)
            await pilot.pause(0.1)
            shown = text(app)
            await pilot.press(*keys)
            while thread.is_alive():
                await pilot.pause(0.02)
            assert len(app.screen_stack) == 1
            return shown

    shown = asyncio.run(asyncio.wait_for(run(), 30))
    return answers[0], shown


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("y", HostKeyAnswer.ALWAYS),
        ("o", HostKeyAnswer.ONCE),
        ("n", HostKeyAnswer.REFUSE),
        ("escape", HostKeyAnswer.REFUSE),
    ],
)
def test_a_host_key_is_trusted_only_by_its_own_key(key: str, answer: HostKeyAnswer) -> None:
    given, shown = ask(lambda prompter: prompter.host_key(QUESTION), "enter", key)
    assert given is answer
    assert QUESTION.fingerprint in shown
    assert "ssh-rsa" in shown


def test_a_password_is_given_and_never_shown() -> None:
    given, shown = ask(lambda prompter: prompter.password("root", "gpu-prod", again=False), *"s3cret[x]", "enter")
    assert given == "s3cret[x]"
    assert "Password of root on gpu-prod" in shown
    assert "That was not it" not in shown


def test_a_wrong_one_is_said_and_escape_declines() -> None:
    given, shown = ask(lambda prompter: prompter.passphrase("/home/me/.ssh/id", again=True), *"abc", "escape")
    assert given is None
    assert "That was not it" in shown


def test_nothing_typed_declines() -> None:
    given, _ = ask(lambda prompter: prompter.sudo_password("me", "gpu-prod", again=False), "enter")
    assert given is None


def test_challenges_are_answered_in_order_and_may_be_empty() -> None:
    questions = (Challenge("Code [no markup]: ", echo=True), Challenge("PIN\x1b[31m:", echo=False))
    given, shown = ask(
        lambda prompter: prompter.challenges("me", "gpu-prod", "Duo", questions), *"123", "enter", "enter"
    )
    assert given == ["123", ""]
    assert "Code [no markup]:" in shown
    assert "\\x1b[31m" in shown


def test_questions_wait_for_each_other() -> None:
    async def run() -> list[str | None]:
        app = stage("prod", current="")
        answers: list[str | None] = []
        async with app.run_test(size=(90, 30)) as pilot:
            prompter = ScreenPrompter(app)
            threads = [
                threading.Thread(
                    target=lambda host=host: answers.append(prompter.password("root", host, again=False)),
                    daemon=True,
                )
                for host in ("one", "two")
            ]
            threads[0].start()
            while len(app.screen_stack) < 2:
                await pilot.pause(0.02)
            threads[1].start()
            await pilot.pause(0.5)
            assert len(app.screen_stack) == 2
            await pilot.press("a", "enter")
            while not answers or len(app.screen_stack) < 2:
                await pilot.pause(0.02)
            await pilot.press("b", "enter")
            while len(answers) < 2:
                await pilot.pause(0.02)
        return answers

    assert asyncio.run(asyncio.wait_for(run(), 30)) == ["a", "b"]


def test_closing_declines_the_question_that_is_open() -> None:
    async def run() -> list[str | None]:
        app = stage("prod", current="")
        answers: list[str | None] = []
        async with app.run_test(size=(90, 30)) as pilot:
            prompter = ScreenPrompter(app)
            thread = threading.Thread(
                target=lambda: answers.append(prompter.password("root", "one", again=False)), daemon=True
            )
            thread.start()
            while len(app.screen_stack) < 2:
                await pilot.pause(0.02)
            prompter.close()
            thread.join(5)
            assert prompter.password("root", "two", again=False) is None
        return answers

    assert asyncio.run(asyncio.wait_for(run(), 30)) == [None]
