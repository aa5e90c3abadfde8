from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.remote.login.login import Login, LoginContext, login
from console.remote.prompts import Challenge, HostKeyAnswer, HostKeyQuestion
from console.remote.target import Target
from tests.remote.sshd import Keys, Sshd, make_keys


class Person:
    """Answers what the test says, in order, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.host_keys: list[HostKeyQuestion] = []
        self.challenged: list[tuple[Challenge, ...]] = []
        self.trust = HostKeyAnswer.REFUSE
        self.passphrases: list[str] = []
        self.passwords: list[str] = []
        self.answers: list[list[str]] = []

    def host_key(self, question: HostKeyQuestion) -> HostKeyAnswer:
        self.host_keys.append(question)
        return self.trust

    def passphrase(self, key_file: str, *, again: bool) -> str | None:
        self.asked.append(f"passphrase {Path(key_file).name}{' again' if again else ''}")
        return self.passphrases.pop(0) if self.passphrases else None

    def password(self, user: str, host: str, *, again: bool) -> str | None:
        self.asked.append(f"password {user}{' again' if again else ''}")
        return self.passwords.pop(0) if self.passwords else None

    def challenges(self, user: str, host: str, title: str, challenges: tuple[Challenge, ...]) -> list[str] | None:
        self.asked.append(f"challenges {', '.join(c.text for c in challenges)}")
        self.challenged.append(challenges)
        return self.answers.pop(0) if self.answers else None

    def sudo_password(self, user: str, host: str, *, again: bool) -> str | None:
        return None


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys"))


StartSshd = Callable[..., Sshd]


@pytest.fixture
def start_sshd(keys: Keys, tmp_path: Path) -> Iterator[StartSshd]:
    running: list[Sshd] = []

    def start(*options: str, name: str = "sshd", **arguments: object) -> Sshd:
        server = Sshd(tmp_path / name, keys, *options, **arguments)  # type: ignore[arg-type]
        running.append(server)
        return server.start()

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
def context(tmp_path: Path) -> Iterator[LoginContext]:
    shared = LoginContext(tmp_path / "app" / "known_hosts")
    yield shared
    shared.close()


Enter = Callable[[Target], Login]


@pytest.fixture
def enter(person: Person, context: LoginContext) -> Iterator[Enter]:
    """Log in, as the person, and close at the end."""
    logins: list[Login] = []

    def log_in(target: Target) -> Login:
        done = login(target, prompter=person, deadline=20.0, context=context)
        logins.append(done)
        return done

    yield log_in
    for done in logins:
        done.close()
