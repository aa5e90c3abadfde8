"""OpenSSH 10, which punishes, and prefers a key exchange that the older one does not have."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.login.login import LoginContext, login
from console.remote.prompts import NoPrompter
from console.remote.target import Target
from tests.remote.conftest import StartSshd
from tests.remote.sshd import Keys, Sshd

pytestmark = pytest.mark.lab


@pytest.fixture
def newer(start_sshd: StartSshd) -> Callable[..., Sshd]:
    def start(*options: str) -> Sshd:
        return start_sshd(*options, release="trixie")

    return start


def fails(target: Target, context: LoginContext) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        login(target, prompter=NoPrompter(), deadline=20, context=context)
    return caught.value


def test_a_login_succeeds_and_its_channel_works(newer: Callable[..., Sshd], context: LoginContext) -> None:
    done = login(newer().target(), prompter=NoPrompter(), deadline=20, context=context)
    assert "OpenSSH_10" in done.transport.remote_version
    assert done.transport.ping(5) < 5
    done.close()


def test_a_punished_address_is_told_so_and_when_to_come_back(
    newer: Callable[..., Sshd], context: LoginContext, keys: Keys
) -> None:
    server = newer("PerSourcePenalties authfail:30s min:5s", "PasswordAuthentication no")
    target = server.target(identity_files=(keys.path("other"),))
    assert fails(target, context).kind is FailureKind.NO_KEY_ACCEPTED
    deadline = time.monotonic() + 10
    while "penalty" not in server.log and time.monotonic() < deadline:
        time.sleep(0.05)
    error = fails(replace(target, name="web1 again"), context)
    assert error.kind is FailureKind.LIMITED, str(error)
    assert not error.needs_a_person
    assert "PerSourcePenalties" in f"{error} {error.hint}"


def test_logins_that_succeed_are_not_punished(newer: Callable[..., Sshd], context: LoginContext) -> None:
    server = newer("PerSourcePenalties noauth:30s authfail:30s min:1s")
    for _ in range(4):
        login(server.target(), prompter=NoPrompter(), deadline=20, context=context).close()
    time.sleep(0.5)
    assert "penalty" not in server.log
