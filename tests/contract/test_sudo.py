"""Becoming root by sudo, on a real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.prompts import NoPrompter, Prompter
from console.remote.scripts.running import open_script, run_script
from console.remote.sudo import Privilege
from tests.contract.conftest import Reach
from tests.lab.fixtures import MachineMaker
from tests.lab.machine import Machine
from tests.lab.users import PASSWORDS

pytestmark = pytest.mark.lab


class Typist(NoPrompter):
    """Types these, in order, then declines."""

    def __init__(self, *passwords: str) -> None:
        self.passwords = list(passwords)
        self.asked: list[tuple[str, str, bool]] = []

    def sudo_password(self, user: str, host: str, *, again: bool) -> str | None:
        self.asked.append((user, host, again))
        return self.passwords.pop(0) if self.passwords else None


@pytest.fixture
def settings(lab_machine: Machine) -> Iterator[str]:
    """A file of sudo settings, gone afterwards."""
    path = "/etc/sudoers.d/zz-test"
    yield path
    lab_machine.run(["rm", "-f", path])


def refused(reach: Reach, machine: Machine, user: str, prompter: Prompter) -> RemoteError:
    transport = reach(machine, user)
    with pytest.raises(RemoteError) as caught:
        run_script(transport, "facts", {}, privilege=Privilege(user, machine.name, prompter), timeout=60)
    return caught.value


def test_sudo_without_a_password(reach: Reach, lab_machine: Machine) -> None:
    privilege = Privilege("op", lab_machine.name, Typist())
    with open_script(reach(lab_machine, "op"), "facts", {}, privilege=privilege, timeout=30) as stream:
        assert stream.hello.uid == 0
        assert (stream.read(30) or {})["uid"] == 0
    with open_script(reach(lab_machine, "op"), "facts", {}, timeout=30) as stream:
        assert stream.hello.uid != 0


def test_root_needs_none(reach: Reach, lab_machine: Machine) -> None:
    privilege = Privilege("root", lab_machine.name, Typist())
    assert run_script(reach(lab_machine), "facts", {}, privilege=privilege, timeout=30)["uid"] == 0


@pytest.mark.parametrize("user", ["opw"])
def test_a_password_is_asked_once_and_kept_for_the_session(reach: Reach, lab_machine: Machine, user: str) -> None:
    typist = Typist(PASSWORDS[user])
    privilege = Privilege(user, lab_machine.name, typist)
    transport = reach(lab_machine, user)
    for _ in range(3):
        assert run_script(transport, "facts", {}, privilege=privilege, timeout=60)["uid"] == 0
    assert typist.asked == [(user, lab_machine.name, False)]


def test_a_wrong_password_counts_once_and_is_asked_again(reach: Reach, lab_machine: Machine) -> None:
    since = lab_machine.run(["date", "+%Y-%m-%d %H:%M:%S"]).stdout.decode().strip()
    typist = Typist("wrong", PASSWORDS["opw"])
    privilege = Privilege("opw", lab_machine.name, typist)
    assert run_script(reach(lab_machine, "opw"), "facts", {}, privilege=privilege, timeout=60)["uid"] == 0
    assert [again for _, _, again in typist.asked] == [False, True]
    journal = lab_machine.run(["journalctl", "-q", "-t", "sudo", "--since", since, "-o", "cat"]).stdout
    assert journal.count(b"authentication failure") == 1
    assert PASSWORDS["opw"].encode() not in journal
    assert b"wrong" not in journal


def test_a_password_never_reaches_the_command_nor_the_process_list(reach: Reach, lab_machine: Machine) -> None:
    privilege = Privilege("opw", lab_machine.name, Typist(PASSWORDS["opw"]))
    transport = reach(lab_machine, "opw")
    # sudo remembers a password for a while; the line must be read all the same.
    for _ in range(2):
        with open_script(transport, "telemetry", {"interval": 0.2}, privilege=privilege, timeout=60) as stream:
            assert stream.hello.uid == 0
            assert stream.read(30)
            seen = lab_machine.run(["ps", "axww", "-o", "args"]).stdout
            assert PASSWORDS["opw"].encode() not in seen


def test_nobody_to_ask(reach: Reach, lab_machine: Machine) -> None:
    caught = refused(reach, lab_machine, "opw", NoPrompter())
    assert caught.kind is FailureKind.SUDO_PASSWORD_WANTED
    assert caught.needs_a_person


def test_three_wrong_passwords(reach: Reach, lab_machine: Machine) -> None:
    typist = Typist("a", "b", "c", "d")
    caught = refused(reach, lab_machine, "opw", typist)
    assert caught.kind is FailureKind.SUDO_REFUSED
    assert len(typist.asked) == 3


def test_one_who_may_not_use_sudo(reach: Reach, lab_machine: Machine) -> None:
    caught = refused(reach, lab_machine, "plain", Typist(PASSWORDS["plain"]))
    assert caught.kind is FailureKind.SUDO_REFUSED
    assert "may not use sudo" in str(caught)


@pytest.mark.parametrize(
    ("user", "line", "words"),
    [
        ("op", "Defaults:op requiretty", "requiretty"),
        ("op", "op ALL=(ALL) !ALL", "some commands only"),
        ("plain", "plain ALL=(ALL) NOPASSWD: /usr/bin/systemctl", "some commands only"),
    ],
)
def test_sudo_that_refuses_says_why(
    reach: Reach, lab_machine: Machine, settings: str, user: str, line: str, words: str
) -> None:
    typist = Typist()
    lab_machine.write(settings, line + "\n", 0o440)
    caught = refused(reach, lab_machine, user, typist)
    assert typist.asked == []
    assert caught.kind is FailureKind.SUDO_REFUSED
    assert words in str(caught)
    assert caught.hint


def test_no_sudo_installed(reach: Reach, fresh_machine: MachineMaker) -> None:
    machine = fresh_machine()
    machine.run(["mv", "/usr/bin/sudo", "/usr/bin/sudo.gone"])
    caught = refused(reach, machine, "op", Typist())
    assert caught.kind is FailureKind.SUDO_REFUSED
    assert "not installed" in str(caught)


def test_the_newer_sudo_with_its_terminal(reach: Reach, lab_trixie: Machine) -> None:
    # sudo 1.9.16 runs commands in a terminal of their own (use_pty).
    typist = Typist("wrong", PASSWORDS["opw"])
    privilege = Privilege("opw", lab_trixie.name, typist)
    transport = reach(lab_trixie, "opw")
    with open_script(transport, "telemetry", {"interval": 0.2}, privilege=privilege, timeout=60) as stream:
        assert stream.hello.uid == 0
        assert [(stream.read(30) or {})["seq"] for _ in range(3)] == [0, 1, 2]
        assert b"telemetry" not in lab_trixie.run(["journalctl", "-q", "-t", "sudo", "-o", "cat"]).stdout
    processes = lab_trixie.run(["ps", "axww", "-o", "args"]).stdout
    for _ in range(100):
        if b"droplet-console" not in processes:
            return
        processes = lab_trixie.run(["ps", "axww", "-o", "args"]).stdout
    pytest.fail(processes.decode())
