"""Every way to prove who one is, against a real sshd."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.login.login import Login
from tests.remote.conftest import Enter, Person, StartSshd
from tests.remote.sshd import PASSPHRASE, PASSWORD, USER, Keys

pytestmark = pytest.mark.lab

KEYBOARD = ("UsePAM yes", "KbdInteractiveAuthentication yes", "PasswordAuthentication no")


def output_of(login: Login, command: str) -> bytes:
    channel = login.transport.open_channel(timeout=10)
    channel.settimeout(10)
    channel.start(command)
    data = b""
    while chunk := channel.recv(4096):
        data += chunk
    return data


@pytest.fixture
def agent(tmp_path: Path, keys: Keys) -> Iterator[str]:
    """A real ssh-agent that holds "other", "rsa" and "ed25519", in this order."""
    path = str(tmp_path / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    try:
        environment = {**os.environ, "SSH_AUTH_SOCK": path}
        while subprocess.run(["ssh-add", "-l"], env=environment, capture_output=True, check=False).returncode == 2:
            assert process.poll() is None  # 2: it does not answer yet
        for name in ("other", "rsa", "ed25519"):
            subprocess.run(
                ["ssh-add", "-q", keys.path(name)], env={**os.environ, "SSH_AUTH_SOCK": path}, check=True
            )
        yield path
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.parametrize("name", ["ed25519", "ecdsa", "rsa", "pem"])
def test_a_key_file_of_each_kind_logs_in(start_sshd: StartSshd, enter: Enter, keys: Keys, name: str) -> None:
    server = start_sshd()
    server.accept(name)
    login = enter(server.target(identity_files=(keys.path(name),)))
    assert output_of(login, "echo $((6*7))") == b"42\n"


def test_the_agent_signs_for_a_key_it_holds(start_sshd: StartSshd, enter: Enter, agent: str) -> None:
    server = start_sshd()
    server.accept("rsa")
    login = enter(server.target(identity_files=(), identity_agent=agent))
    assert login.transport.is_authenticated()


def test_a_key_named_in_the_settings_goes_before_the_agents_others(
    start_sshd: StartSshd, enter: Enter, keys: Keys, agent: str
) -> None:
    server = start_sshd("MaxAuthTries 1")
    enter(server.target(identity_files=(keys.path("ed25519"),), identity_agent=agent))
    assert "Failed publickey" not in server.log


def test_identities_only_offers_nothing_else_from_the_agent(
    start_sshd: StartSshd, enter: Enter, keys: Keys, agent: str
) -> None:
    server = start_sshd()
    server.accept("ecdsa")
    with pytest.raises(RemoteError) as caught:
        enter(server.target(identity_files=(keys.path("rsa"),), identity_agent=agent, identities_only=True))
    assert caught.value.kind is FailureKind.NO_KEY_ACCEPTED
    offered = str(caught.value).split("Offered: ")[1]
    assert offered.count("SHA256:") == 1
    assert "RSA SHA256:" in offered


def test_a_public_half_on_disk_selects_the_agents_key(
    start_sshd: StartSshd, enter: Enter, keys: Keys, agent: str, tmp_path: Path
) -> None:
    server = start_sshd()
    (tmp_path / "only.pub").write_text(keys.public("ed25519"))
    target = server.target(identity_files=(str(tmp_path / "only"),), identity_agent=agent, identities_only=True)
    assert enter(target).transport.is_authenticated()


def test_the_key_that_was_taken_is_offered_first_next_time(start_sshd: StartSshd, enter: Enter, agent: str) -> None:
    server = start_sshd("LogLevel DEBUG1")
    target = server.target(identity_files=(), identity_agent=agent)
    enter(target)
    tries_at_first = server.log.count("userauth-request for user root")
    enter(target)
    assert tries_at_first == 4  # three questions, one signature
    assert server.log.count("userauth-request for user root") == tries_at_first + 1


@pytest.mark.parametrize("name", ["locked", "locked_pem"])
def test_an_encrypted_key_asks_once_for_the_session(
    start_sshd: StartSshd, enter: Enter, keys: Keys, person: Person, name: str
) -> None:
    server = start_sshd()
    server.accept(name)
    target = server.target(identity_files=(keys.path(name),))
    person.passphrases = ["wrong", PASSPHRASE]
    enter(target)
    enter(target)
    assert person.asked == [f"passphrase {name}", f"passphrase {name} again"]


def test_no_passphrase_is_asked_for_a_key_that_the_server_does_not_want(
    start_sshd: StartSshd, enter: Enter, keys: Keys, person: Person
) -> None:
    server = start_sshd()
    enter(server.target(identity_files=(keys.path("locked"), keys.path("ed25519"))))
    assert person.asked == []


def test_declining_the_passphrase_ends_it_and_says_so(
    start_sshd: StartSshd, enter: Enter, keys: Keys, person: Person
) -> None:
    server = start_sshd()
    server.accept("locked")
    with pytest.raises(RemoteError, match="its passphrase was not given") as caught:
        enter(server.target(identity_files=(keys.path("locked"),)))
    assert caught.value.kind is FailureKind.NO_KEY_ACCEPTED
    assert caught.value.needs_a_person


def sign(keys: Keys, folder: Path, name: str, *options: str) -> str:
    """A certificate for a copy of a key, where ssh looks for it."""
    for suffix in ("", ".pub"):
        copy = folder / f"{name}{suffix}"
        copy.write_bytes(Path(keys.path(name) + suffix).read_bytes())
        copy.chmod(0o600)
    command = ["ssh-keygen", "-q", "-s", keys.path("ca"), "-I", "test", "-n", "root", *options]
    subprocess.run([*command, str(folder / f"{name}.pub")], check=True)
    return str(folder / name)


@pytest.mark.parametrize("name", ["ed25519", "ecdsa", "rsa"])
def test_a_certificate_beside_its_key_logs_in(
    start_sshd: StartSshd, enter: Enter, keys: Keys, tmp_path: Path, name: str
) -> None:
    server = start_sshd(f"TrustedUserCAKeys {keys.path('ca')}.pub")
    server.accept()
    assert enter(server.target(identity_files=(sign(keys, tmp_path, name),))).transport.is_authenticated()


@pytest.mark.parametrize("name", ["ed25519", "rsa"])
def test_a_certificate_that_the_agent_holds_logs_in(
    start_sshd: StartSshd, enter: Enter, keys: Keys, tmp_path: Path, agent: str, name: str
) -> None:
    server = start_sshd(f"TrustedUserCAKeys {keys.path('ca')}.pub")
    server.accept()
    path = sign(keys, tmp_path, name)
    subprocess.run(["ssh-add", "-q", path], env={**os.environ, "SSH_AUTH_SOCK": agent}, check=True)
    Path(path).unlink()
    assert enter(server.target(identity_files=(), identity_agent=agent)).transport.is_authenticated()


def test_a_certificate_in_a_file_is_signed_for_by_the_agent(
    start_sshd: StartSshd, enter: Enter, keys: Keys, tmp_path: Path, agent: str
) -> None:
    server = start_sshd(f"TrustedUserCAKeys {keys.path('ca')}.pub")
    server.accept()
    path = sign(keys, tmp_path, "ed25519")
    target = server.target(
        identity_files=(path,), certificate_files=(path + "-cert.pub",), identity_agent=agent, identities_only=True
    )
    assert enter(target).transport.is_authenticated()


def test_the_right_password_logs_in_and_is_not_asked_for_again(
    start_sshd: StartSshd, enter: Enter, person: Person
) -> None:
    server = start_sshd("UsePAM yes", "KbdInteractiveAuthentication no")
    person.passwords = ["wrong", PASSWORD]
    target = server.target(user=USER, identity_files=())
    assert output_of(enter(target), "id -un") == b"ops\n"
    enter(target)
    assert person.asked == [f"password {USER}", f"password {USER} again"]


def test_a_wrong_password_is_never_tried_again_by_itself(
    start_sshd: StartSshd, enter: Enter, person: Person
) -> None:
    server = start_sshd("UsePAM yes", "KbdInteractiveAuthentication no")
    person.passwords = ["hunter-seven"]
    with pytest.raises(RemoteError) as caught:
        enter(server.target(user=USER, identity_files=()))
    assert caught.value.kind is FailureKind.PASSWORD_REFUSED
    assert caught.value.needs_a_person
    assert "hunter-seven" not in f"{caught.value} {caught.value.hint} {caught.value.__cause__!r}"
    assert server.log.count("Failed password") == 1


def test_a_dialogue_logs_in_and_its_password_is_remembered(
    start_sshd: StartSshd, enter: Enter, person: Person
) -> None:
    server = start_sshd(*KEYBOARD)
    person.answers = [["wrong"], [PASSWORD]]
    target = server.target(user=USER, identity_files=())
    enter(target)
    enter(target)
    assert len(person.asked) == 2
    assert person.challenged[0][0].text == "Password:"
    assert person.challenged[0][0].echo is False


def test_a_second_factor_is_asked_for_after_the_key(start_sshd: StartSshd, enter: Enter, person: Person) -> None:
    server = start_sshd(*KEYBOARD, "AuthenticationMethods publickey,keyboard-interactive")
    person.answers = [[PASSWORD]]
    assert enter(server.target(user=USER)).transport.is_authenticated()
    assert person.asked == ["challenges Password:"]


def test_without_anyone_to_ask_the_second_factor_is_what_is_wanted(start_sshd: StartSshd, enter: Enter) -> None:
    server = start_sshd(*KEYBOARD, "AuthenticationMethods publickey,keyboard-interactive")
    with pytest.raises(RemoteError, match="keyboard-interactive") as caught:
        enter(server.target(user=USER))
    assert caught.value.kind is FailureKind.SECOND_FACTOR_WANTED
    assert caught.value.needs_a_person


def test_two_keys_can_be_wanted_one_after_the_other(start_sshd: StartSshd, enter: Enter, keys: Keys) -> None:
    server = start_sshd("AuthenticationMethods publickey,publickey")
    server.accept("ed25519", "ecdsa")
    target = server.target(identity_files=(keys.path("ed25519"), keys.path("ecdsa")))
    assert enter(target).transport.is_authenticated()


def test_a_refusal_names_every_key_offered_and_why_others_were_not(
    start_sshd: StartSshd, enter: Enter, keys: Keys, tmp_path: Path
) -> None:
    server = start_sshd("PasswordAuthentication no")
    readable = tmp_path / "readable"
    readable.write_bytes(Path(keys.path("ed25519")).read_bytes())
    readable.chmod(0o644)
    (tmp_path / "junk").write_text("nothing")
    files = (keys.path("other"), keys.path("rsa"), str(readable), str(tmp_path / "junk"), str(tmp_path / "absent"))
    with pytest.raises(RemoteError) as caught:
        enter(server.target(identity_files=files))
    text = str(caught.value)
    assert caught.value.kind is FailureKind.NO_KEY_ACCEPTED
    offered, unusable = text.split("Offered: ")[1].split("Not usable: ")
    assert keys.path("other") in offered
    assert keys.path("rsa") in offered
    for expected in ("chmod 600", "not a private key", "there is no such file"):
        assert expected in unusable
    assert caught.value.hint is not None
    assert "It takes: publickey" in caught.value.hint


def test_too_many_keys_say_how_to_name_the_right_one(
    start_sshd: StartSshd, enter: Enter, keys: Keys, agent: str
) -> None:
    server = start_sshd("MaxAuthTries 2")
    server.accept("locked")
    with pytest.raises(RemoteError, match="too many keys") as caught:
        enter(server.target(identity_files=(), identity_agent=agent))
    assert caught.value.kind is FailureKind.NO_KEY_ACCEPTED
    assert "IdentitiesOnly" in (caught.value.hint or "")


def test_an_agent_that_is_gone_is_named(start_sshd: StartSshd, enter: Enter, tmp_path: Path) -> None:
    server = start_sshd("PasswordAuthentication no")
    gone = str(tmp_path / "gone")
    with pytest.raises(RemoteError, match=f"no agent answers at {gone}") as caught:
        enter(server.target(identity_files=(), identity_agent=gone))
    assert caught.value.kind is FailureKind.NO_KEY_ACCEPTED
    assert "there is no key to offer" in str(caught.value)


def test_a_booting_droplet_is_not_a_wrong_key(start_sshd: StartSshd, enter: Enter, tmp_path: Path) -> None:
    server = start_sshd("UsePAM yes", "PasswordAuthentication no", "KbdInteractiveAuthentication no")
    nologin = server.folder / "etc" / "pam"
    words = server.folder / "nologin"
    words.write_text("System is booting up. Unprivileged users are not permitted to log in yet.\n")
    nologin.write_text(nologin.read_text().replace("pam_nologin.so", f"pam_nologin.so file={words}"))
    with pytest.raises(RemoteError, match="System is booting up") as caught:
        enter(server.target(user=USER))
    assert caught.value.kind is FailureKind.STILL_BOOTING
    assert not caught.value.needs_a_person
