from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.remote.connect import connect
from console.remote.login import LoginContext
from console.remote.prompts import NoPrompter
from console.remote.target import Target
from console.remote.transport import Transport
from tests.remote.sshd import Keys, Sshd, make_keys, missing

Connect = Callable[[Target], Transport]


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    reason = missing()
    if reason is not None:
        pytest.skip(f"a real sshd on loopback {reason}")
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def sshd(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = Sshd(tmp_path_factory.mktemp("sshd"), keys).start()
    yield server
    server.stop()


@pytest.fixture
def connected(tmp_path: Path) -> Iterator[Connect]:
    """Connect, and close at the end."""
    context = LoginContext(tmp_path / "app" / "known_hosts")
    open_now: list[Transport] = []

    def reach(target: Target) -> Transport:
        transport = connect(target, prompter=NoPrompter(), context=context, timeout=20)
        open_now.append(transport)
        return transport

    yield reach
    for transport in open_now:
        transport.close()
    context.close()


@pytest.fixture(params=["ssh", "local"])
def transport(request: pytest.FixtureRequest, connected: Connect) -> Transport:
    if request.param == "local":
        return connected(Target(name="here", local=True))
    sshd: Sshd = request.getfixturevalue("sshd")
    return connected(sshd.target())


@pytest.fixture
def ssh(sshd: Sshd, connected: Connect) -> Transport:
    return connected(sshd.target())
