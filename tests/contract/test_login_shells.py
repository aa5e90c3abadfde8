"""Whatever the login shell is, and when it refuses."""

from __future__ import annotations

import time

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.scripts.running import open_script
from tests.contract.conftest import Reach
from tests.contract.living import long_sleep, wait_for
from tests.lab.fixtures import MachineMaker
from tests.lab.machine import Machine

pytestmark = pytest.mark.lab

WORDS = ["it's", 'a "b"', "\\ \\\\ \\'", "!x", "$HOME", "a\nb", "é☃", "{a,b}", "^x", "=ls", "~", "x" * 20_000]


@pytest.mark.parametrize("user", ["root", "plain", "fish", "tcsh", "noisy"])
def test_commands_arrive_through_any_login_shell(reach: Reach, lab_machine: Machine, user: str) -> None:
    transport = reach(lab_machine, user)
    done = transport.run(["sh", "-c", 'id -un; printf "%s\\0" "$@"', "sh", *WORDS], timeout=30)
    name, _, rest = done.stdout.partition(b"\n")
    assert name == user.encode()
    assert rest.split(b"\0")[:-1] == [word.encode() for word in WORDS]


@pytest.mark.parametrize("user", ["fish", "tcsh", "noisy"])
def test_what_runs_in_any_login_shell_ends_with_its_channel(reach: Reach, lab_machine: Machine, user: str) -> None:
    transport = reach(lab_machine, user)
    assert transport.run(["sh", "-c", "cat; exit 9"], stdin=b"x" * 200_000, timeout=30).exit_status == 9
    assert transport.run(["sh", "-c", "kill -KILL $$"], timeout=30).signal == "KILL"
    seconds = long_sleep()
    process = transport.open(["sh", "-c", f"sleep {seconds} & sleep {seconds}; :"], timeout=20)
    wait_for(seconds, 2)
    process.close()
    wait_for(seconds, 0)


def test_what_a_login_shell_says_is_not_the_commands_output(reach: Reach, lab_machine: Machine) -> None:
    done = reach(lab_machine, "noisy").run(["echo", "mine"], timeout=20)
    assert done.stdout == b"mine\n"


def test_a_shell_that_refuses(reach: Reach, lab_machine: Machine) -> None:
    transport = reach(lab_machine, "nobodyhome")
    with pytest.raises(RemoteError) as caught:
        transport.run(["true"], timeout=20)
    assert caught.value.kind is FailureKind.SHELL_REFUSED
    assert "This account is currently not available" in str(caught.value)
    assert "chsh" in (caught.value.hint or "")
    process = transport.open(["true"], timeout=20)
    with pytest.raises(RemoteError) as caught:
        process.read(20)
    assert caught.value.kind is FailureKind.SHELL_REFUSED
    with pytest.raises(RemoteError) as caught:
        transport.open(["true"], timeout=20).wait(20)
    assert caught.value.kind is FailureKind.SHELL_REFUSED


def test_a_droplet_that_still_boots(reach: Reach, lab_machine: Machine) -> None:
    with pytest.raises(RemoteError) as caught:
        reach(lab_machine, "booting").run(["true"], timeout=20)
    assert caught.value.kind is FailureKind.STILL_BOOTING
    assert "Please wait while we get your droplet ready..." in str(caught.value)
    assert caught.value.retry_after
    assert not caught.value.needs_a_person


def test_a_forced_command_that_passes_ours_on(reach: Reach, fresh_machine: MachineMaker) -> None:
    # Its own shell leads the process group then, in our place.
    machine = fresh_machine(sshd=['ForceCommand sh -c "$SSH_ORIGINAL_COMMAND"; echo done-wrapping'])
    transport = reach(machine)
    assert transport.run(["echo", "it's"], timeout=20).stdout.startswith(b"it's\n")
    seconds = long_sleep()
    process = transport.open(["sh", "-c", f"sleep {seconds} & sleep {seconds}; :"], timeout=20)
    wait_for(seconds, 2)
    process.close()
    wait_for(seconds, 0)


def test_fewer_sessions_than_we_would_use(reach: Reach, fresh_machine: MachineMaker) -> None:
    machine = fresh_machine(sshd=["MaxSessions 2"])
    transport = reach(machine)
    first, second = (transport.open(["cat"], timeout=20) for _ in range(2))
    with pytest.raises(RemoteError) as caught:
        transport.run(["true"], timeout=1)
    assert caught.value.kind is FailureKind.SHELL_REFUSED
    assert "MaxSessions" in (caught.value.hint or "")
    first.close()
    # The server counts the session until what ran in it is gone; that is waited for.
    began = time.monotonic()
    assert transport.run(["echo", "free"], timeout=20).stdout == b"free\n"
    assert time.monotonic() - began < 15
    second.close()


@pytest.mark.parametrize("noise", ["yes no", "yes no >&2"])
def test_a_shell_that_never_stops_talking_is_not_listened_to_for_long(
    reach: Reach, fresh_machine: MachineMaker, noise: str
) -> None:
    machine = fresh_machine()
    machine.write("/home/plain/.bashrc", f"{noise}\n", owner="plain")
    transport = reach(machine, "plain")
    with pytest.raises(RemoteError, match="no no no") as caught:
        transport.run(["true"], timeout=60)
    assert caught.value.kind is FailureKind.SHELL_REFUSED
    with pytest.raises(RemoteError, match="no no no") as caught:
        open_script(transport, "telemetry", {}, timeout=60)
    assert caught.value.kind is FailureKind.SHELL_REFUSED


def test_a_shell_that_hangs_is_left_alone_for_a_while(reach: Reach, fresh_machine: MachineMaker) -> None:
    machine = fresh_machine()
    machine.write("/home/plain/.bashrc", "sleep 100\n", owner="plain")
    with pytest.raises(RemoteError, match="did not start in time") as caught:
        open_script(reach(machine, "plain"), "telemetry", {}, timeout=2)
    assert caught.value.kind is FailureKind.COMMAND_TIMED_OUT
    assert ".bashrc" in (caught.value.hint or "")
    assert (caught.value.retry_after or 0) >= 30  # each try leaves a shell that hangs
