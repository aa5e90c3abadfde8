"""Jump hosts and ProxyCommand, with real sshds in between."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.login.login import Login, LoginContext, login
from console.remote.prompts import NoPrompter
from console.remote.target import Target
from tests.remote.conftest import Enter, Person, StartSshd
from tests.remote.sshd import PASSWORD, USER, Keys, free_port
from tests.remote.stalling_proxy import StallingProxy

pytestmark = pytest.mark.lab


def test_droplets_behind_a_jump_host_share_one_login_there(
    start_sshd: StartSshd, context: LoginContext, keys: Keys
) -> None:
    bastion = start_sshd("MaxStartups 3:100:3", "MaxSessions 1", name="bastion")
    inner = start_sshd("MaxStartups 100", name="inner", listen="0.0.0.0")
    inner.know(f"* {keys.public('host_ed25519')}")
    base = inner.target(jumps=(bastion.target(name="bastion"),))
    # Thirty addresses of one sshd: to the limits they are different machines.
    targets = [replace(base, name=f"web{number}", host=f"127.0.0.{number + 10}") for number in range(30)]

    def enter(target: Target) -> Login:
        return login(target, prompter=NoPrompter(), deadline=30, context=context)

    with ThreadPoolExecutor(30) as pool:
        logins = list(pool.map(enter, targets))
    assert all(done.transport.is_authenticated() for done in logins)
    assert bastion.connections() == 1
    for done in logins:
        done.close()


def test_a_chain_of_jump_hosts(start_sshd: StartSshd, enter: Enter) -> None:
    first, second, third = (start_sshd(name=name) for name in ("first", "second", "third"))
    hops = (first.target(name="first"), second.target(name="second"))
    target = third.target(jumps=hops)
    assert enter(target).transport.is_authenticated()
    assert enter(target).transport.is_authenticated()
    assert (first.connections(), second.connections(), third.connections()) == (1, 1, 2)


def test_a_jump_host_that_is_down_is_asked_once_for_all_behind_it(context: LoginContext) -> None:
    hop = Target("bastion", host="127.0.0.1", port=free_port(), user="root")
    began = time.monotonic()

    def reach(number: int) -> RemoteError:
        with pytest.raises(RemoteError) as caught:
            login(
                Target(f"web{number}", host=f"10.0.0.{number}", user="root", jumps=(hop,)),
                prompter=NoPrompter(),
                deadline=10,
                context=context,
            )
        return caught.value

    with ThreadPoolExecutor(20) as pool:
        errors = list(pool.map(reach, range(20)))
    assert time.monotonic() - began < 10
    assert {error.kind for error in errors} == {FailureKind.JUMP_HOST_FAILED}
    assert all("bastion" in str(error) and "refuses the connection" in str(error) for error in errors)
    assert all(not error.needs_a_person for error in errors)


def test_a_wrong_key_at_the_jump_host_needs_a_person(start_sshd: StartSshd, enter: Enter, keys: Keys) -> None:
    bastion = start_sshd("PasswordAuthentication no", name="bastion")
    hop = bastion.target(name="bastion", identity_files=(keys.path("other"),))
    with pytest.raises(RemoteError, match=r"bastion.*accepts none of the keys") as caught:
        enter(Target("web1", host="10.0.0.1", user="root", jumps=(hop,)))
    assert caught.value.kind is FailureKind.JUMP_HOST_FAILED
    assert caught.value.needs_a_person


def test_a_droplet_that_refuses_is_told_apart_from_its_jump_host(start_sshd: StartSshd, enter: Enter) -> None:
    bastion = start_sshd(name="bastion")
    target = Target(
        "web1", host="127.0.0.1", port=free_port(), user="root", jumps=(bastion.target(name="bastion"),)
    )
    with pytest.raises(RemoteError, match="as seen from bastion") as caught:
        enter(target)
    assert caught.value.kind is FailureKind.REFUSED


def test_a_jump_host_that_forbids_forwarding_says_so(start_sshd: StartSshd, enter: Enter) -> None:
    bastion = start_sshd("AllowTcpForwarding no", name="bastion")
    with pytest.raises(RemoteError, match="does not allow") as caught:
        enter(Target("web1", host="127.0.0.1", user="root", jumps=(bastion.target(name="bastion"),)))
    assert caught.value.kind is FailureKind.JUMP_HOST_FAILED
    assert "AllowTcpForwarding" in (caught.value.hint or "")


def test_a_name_is_looked_up_on_the_jump_host(start_sshd: StartSshd, enter: Enter) -> None:
    bastion = start_sshd(name="bastion")
    with pytest.raises(RemoteError, match=r"no-such-host\.invalid is|cannot connect to") as caught:
        enter(Target("web1", host="no-such-host.invalid", user="root", jumps=(bastion.target(name="bastion"),)))
    assert caught.value.kind is FailureKind.JUMP_HOST_FAILED


def test_the_jump_hosts_second_factor_is_asked_for_once(
    start_sshd: StartSshd, enter: Enter, person: Person
) -> None:
    bastion = start_sshd(
        "UsePAM yes",
        "KbdInteractiveAuthentication yes",
        "AuthenticationMethods publickey,keyboard-interactive",
        name="bastion",
    )
    inner = start_sshd(name="inner")
    person.answers = [[PASSWORD]]
    target = inner.target(jumps=(bastion.target(name="bastion", user=USER),))
    with ThreadPoolExecutor(4) as pool:
        logins = list(pool.map(enter, [target] * 4))
    assert len(logins) == 4
    assert person.asked == ["challenges Password:"]


def test_a_jump_host_that_came_back_is_logged_in_to_again(
    start_sshd: StartSshd, enter: Enter, context: LoginContext
) -> None:
    bastion, inner = start_sshd(name="bastion"), start_sshd(name="inner")
    target = inner.target(jumps=(bastion.target(name="bastion"),))
    first = enter(target)
    (entry,) = context.jumps._entries.values()
    assert entry.login is not None
    entry.login.transport.close()  # as if the line had broken
    deadline = time.monotonic() + 10
    while first.transport.is_active() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not first.transport.is_active()
    assert enter(target).transport.is_authenticated()
    assert bastion.connections() == 2


def proxied(target: Target, command: str) -> Target:
    return replace(target, proxy_command=command, host="192.0.2.9")


def forward(port: int) -> str:
    """A command that connects its input and output to a port, with nothing but Python."""
    script = Path(__file__).with_name("forward.py")
    return f"python3 '{script}' {port}"


def test_a_proxy_command_is_the_line(start_sshd: StartSshd, enter: Enter) -> None:
    server = start_sshd()
    target = server.target()
    text = (server.folder / "known_hosts").read_text()
    (server.folder / "known_hosts").write_text(text.replace("[127.0.0.1]", "[192.0.2.9]"))
    done = enter(proxied(target, forward(server.port)))
    assert done.transport.ping(5) < 5
    assert done.transport.is_authenticated()


def test_a_proxy_command_ends_with_the_login(start_sshd: StartSshd, context: LoginContext) -> None:
    server = start_sshd()
    target = server.target(strict_host_key_checking="no", known_hosts_files=())
    done = login(proxied(target, forward(server.port)), prompter=NoPrompter(), deadline=20, context=context)
    stream = done.transport.sock  # type: ignore[attr-defined]
    assert stream._process.poll() is None
    done.close()
    assert stream._process.wait(10) is not None


@pytest.mark.parametrize(
    ("command", "kind", "words"),
    [
        ("echo this cannot be >&2; exit 3", FailureKind.JUMP_HOST_FAILED, "status 3: this cannot be"),
        ("/no/such/command %h", FailureKind.SETTINGS, "status 127"),
        ("kill -9 $$", FailureKind.JUMP_HOST_FAILED, "signal 9"),
        ("true", FailureKind.LIMITED, "without a word"),
    ],
)
def test_a_proxy_command_that_fails_says_what_it_said(
    context: LoginContext, command: str, kind: FailureKind, words: str
) -> None:
    with pytest.raises(RemoteError) as caught:
        login(
            Target("web1", host="192.0.2.9", user="root", proxy_command=f"sh -c '{command}'"),
            prompter=NoPrompter(),
            deadline=10,
            context=context,
        )
    assert caught.value.kind is kind
    assert words in str(caught.value)


def test_a_jump_host_whose_line_went_silent_is_replaced(start_sshd: StartSshd, context: LoginContext) -> None:
    """A stalled line: bytes go nowhere, nobody hangs up."""
    bastion, inner = start_sshd(name="bastion"), start_sshd(name="inner")
    with StallingProxy(bastion.port) as proxy:
        hop = bastion.target(name="bastion", port=proxy.port, strict_host_key_checking="no", known_hosts_files=())
        target = inner.target(jumps=(hop,))
        login(target, prompter=NoPrompter(), deadline=20, context=context).close()
        proxy.stall()
        (entry,) = context.jumps._entries.values()
        assert entry.login is not None
        entry.login.transport.packetizer.read_at -= 10  # type: ignore[attr-defined]
        login(target, prompter=NoPrompter(), deadline=20, context=context).close()
    assert bastion.connections() == 2
