"""Agents that hold hardware keys, decline, hang or talk nonsense."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from console.remote.authentication import agent
from console.remote.errors import FailureKind, RemoteError
from console.remote.prompts import HostKeyAnswer
from tests.remote.conftest import Enter, Person, StartSshd
from tests.remote.fake_agent import SK, FakeAgent
from tests.remote.sshd import Keys

pytestmark = pytest.mark.lab


def test_a_hardware_key_works_through_its_agent(start_sshd: StartSshd, enter: Enter, tmp_path: Path) -> None:
    server = start_sshd()
    with FakeAgent(tmp_path / "agent") as holder:
        (server.folder / "authorized_keys").write_text(f"{SK} {base64.b64encode(holder.blob).decode()}\n")
        done = enter(server.target(identity_files=(), identity_agent=holder.path))
    assert done.transport.is_authenticated()
    assert holder.signatures == 1


def test_nobody_has_to_touch_a_hardware_key_that_the_server_does_not_want(
    start_sshd: StartSshd, enter: Enter, keys: Keys, tmp_path: Path
) -> None:
    server = start_sshd()
    with FakeAgent(tmp_path / "agent") as holder:
        enter(server.target(identity_agent=holder.path))
    assert holder.signatures == 0


def test_an_agent_that_declines_is_named_with_its_key(start_sshd: StartSshd, enter: Enter, tmp_path: Path) -> None:
    server = start_sshd("PasswordAuthentication no")
    with FakeAgent(tmp_path / "agent", declines=True) as holder:
        (server.folder / "authorized_keys").write_text(f"{SK} {base64.b64encode(holder.blob).decode()}\n")
        with pytest.raises(RemoteError) as caught:
            enter(server.target(identity_files=(), identity_agent=holder.path))
    assert caught.value.kind is FailureKind.NO_KEY_ACCEPTED
    assert "the agent declined" in str(caught.value)
    assert r"yubi \x1b[31mkey" in str(caught.value)


def test_a_hardware_key_in_a_file_says_what_works(start_sshd: StartSshd, enter: Enter, tmp_path: Path) -> None:
    server = start_sshd("PasswordAuthentication no")
    with FakeAgent(tmp_path / "agent") as holder:
        body = b"openssh-key-v1\0" + b"".join(
            len(part).to_bytes(4, "big") + part for part in (b"none", b"none", b"")
        )
        body += (1).to_bytes(4, "big") + len(holder.blob).to_bytes(4, "big") + holder.blob
    name = "OPENSSH PRIVATE KEY"
    text = f"-----BEGIN {name}-----\n{base64.b64encode(body).decode()}\n-----END {name}-----\n"
    path = tmp_path / "id_sk"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(RemoteError, match="ssh-add") as caught:
        enter(server.target(identity_files=(str(path),)))
    assert caught.value.kind is FailureKind.NO_KEY_ACCEPTED


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        b"\0\0\0\1\x63",
        b"\0\0\0\5\x0c\0\0\0\x09",
        b"\0\0\0\x09\x0c\xff\xff\xff\xff\0\0\0\1",
    ],
)
def test_nonsense_from_an_agent_does_not_stop_a_key_file(
    start_sshd: StartSshd,
    enter: Enter,
    person: Person,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: bytes,
) -> None:
    monkeypatch.setattr(agent, "_LIST_TIMEOUT", 0.5)
    server = start_sshd()
    person.trust = HostKeyAnswer.REFUSE
    with FakeAgent(tmp_path / "agent", answer=answer) as holder:
        assert enter(server.target(identity_agent=holder.path)).transport.is_authenticated()
