"""Whether the server is the one it says it is, against a real sshd."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.login.login import LoginContext, login
from console.remote.prompts import HostKeyAnswer
from tests.remote.conftest import Enter, Person, StartSshd
from tests.remote.sshd import Keys

pytestmark = pytest.mark.lab


def fingerprint(keys: Keys, name: str) -> str:
    done = subprocess.run(["ssh-keygen", "-lf", keys.path(name)], capture_output=True, text=True, check=True)
    return done.stdout.split()[1]


def test_an_unknown_key_is_shown_as_ssh_keygen_shows_it_and_refused_without_a_word(
    start_sshd: StartSshd, enter: Enter, person: Person, keys: Keys
) -> None:
    server = start_sshd()
    with pytest.raises(RemoteError, match="is not known") as caught:
        enter(server.target(known_hosts_files=()))
    assert caught.value.kind is FailureKind.HOST_KEY_UNKNOWN
    assert caught.value.needs_a_person
    (question,) = person.host_keys
    assert question.fingerprint == fingerprint(keys, "host_ed25519")
    assert question.key_type == "ssh-ed25519"
    assert "Accepted" not in server.log


def test_a_key_accepted_for_good_is_kept_in_the_apps_own_file(
    start_sshd: StartSshd, enter: Enter, person: Person, tmp_path: Path
) -> None:
    server = start_sshd()
    theirs = tmp_path / "theirs"
    theirs.write_text("# mine alone\n")
    person.trust = HostKeyAnswer.ALWAYS
    target = server.target(known_hosts_files=(str(theirs),))
    enter(target)
    kept = tmp_path / "app" / "known_hosts"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.read_text().startswith(f"[127.0.0.1]:{server.port} ssh-ed25519 ")
    assert theirs.read_text() == "# mine alone\n"
    person.trust = HostKeyAnswer.REFUSE
    other = LoginContext(kept)
    login(target, prompter=person, deadline=20, context=other).close()
    assert len(person.host_keys) == 1


def test_a_key_accepted_once_is_not_asked_about_again_and_not_written(
    start_sshd: StartSshd, enter: Enter, person: Person, tmp_path: Path
) -> None:
    server = start_sshd()
    person.trust = HostKeyAnswer.ONCE
    for _ in range(2):
        enter(server.target(known_hosts_files=()))
    assert len(person.host_keys) == 1
    assert not (tmp_path / "app" / "known_hosts").exists()


def test_a_changed_key_is_a_hard_stop_with_the_command_that_helps(
    start_sshd: StartSshd, enter: Enter, person: Person, keys: Keys
) -> None:
    server = start_sshd()
    server.know("other")
    target = server.target()
    with pytest.raises(RemoteError, match="has changed") as caught:
        enter(target)
    error = caught.value
    assert error.kind is FailureKind.HOST_KEY_CHANGED
    assert error.needs_a_person
    assert person.host_keys == []
    assert fingerprint(keys, "host_ed25519") in str(error)
    assert f"{target.known_hosts_files[0]}:1 has {fingerprint(keys, 'other')}" in str(error)
    (command,) = [line.strip() for line in (error.hint or "").splitlines() if "ssh-keygen" in line]
    subprocess.run(command, shell=True, check=True, capture_output=True)
    person.trust = HostKeyAnswer.ONCE
    assert enter(target).transport.is_authenticated()


def test_a_host_known_by_its_rsa_key_alone_shows_that_key(
    start_sshd: StartSshd, enter: Enter, person: Person
) -> None:
    server = start_sshd(host_keys=("host_ed25519", "host_rsa"))
    server.know("host_rsa")
    assert enter(server.target()).transport.is_authenticated()
    assert person.host_keys == []


def test_another_type_of_key_than_the_known_one_is_a_reason_for_doubt(
    start_sshd: StartSshd, enter: Enter, person: Person
) -> None:
    server = start_sshd()
    server.know("host_rsa")
    with pytest.raises(RemoteError):
        enter(server.target())
    assert person.host_keys[0].other_types == ("ssh-rsa",)


def test_a_revoked_key_is_refused_even_where_it_is_known(start_sshd: StartSshd, enter: Enter, keys: Keys) -> None:
    server = start_sshd()
    key = " ".join(keys.public("host_ed25519").split()[:2])
    server.know(f"[127.0.0.1]:{server.port} {key}", f"@revoked * {key}")
    with pytest.raises(RemoteError, match=r"is revoked in .*known_hosts:2") as caught:
        enter(server.target())
    assert caught.value.kind is FailureKind.HOST_KEY_REVOKED


def test_revoked_host_keys_are_read(start_sshd: StartSshd, enter: Enter, keys: Keys, tmp_path: Path) -> None:
    server = start_sshd()
    listed = tmp_path / "revoked"
    listed.write_text(keys.public("host_ed25519") + "\n")
    with pytest.raises(RemoteError, match="is revoked in") as caught:
        enter(server.target(options={"revokedhostkeys": str(listed)}))
    assert caught.value.kind is FailureKind.HOST_KEY_REVOKED


@pytest.mark.parametrize("setting", ["yes", "no", "accept-new"])
def test_strict_host_key_checking_decides_without_asking(
    start_sshd: StartSshd, enter: Enter, person: Person, tmp_path: Path, setting: str
) -> None:
    server = start_sshd()
    target = server.target(known_hosts_files=(), strict_host_key_checking=setting)
    if setting == "yes":
        with pytest.raises(RemoteError) as caught:
            enter(target)
        assert caught.value.kind is FailureKind.HOST_KEY_UNKNOWN
    else:
        enter(target)
    assert person.host_keys == []
    assert (tmp_path / "app" / "known_hosts").exists() == (setting == "accept-new")


def certify(keys: Keys, folder: Path, *options: str, authority: str = "ca", name: str = "host_ed25519") -> str:
    folder.mkdir(exist_ok=True)
    public = folder / "host.pub"
    public.write_text(keys.public(name))
    command = ["ssh-keygen", "-q", "-s", keys.path(authority), "-I", "web1", "-h", *options, str(public)]
    subprocess.run(command, check=True)
    return str(folder / "host-cert.pub")


@pytest.mark.parametrize("name", ["host_ed25519", "host_rsa"])
def test_a_host_certificate_of_a_known_authority_needs_no_question(
    start_sshd: StartSshd, enter: Enter, person: Person, keys: Keys, tmp_path: Path, name: str
) -> None:
    certificate = certify(keys, tmp_path / "c", "-n", "127.0.0.1", name=name)
    server = start_sshd(f"HostCertificate {certificate}", host_keys=(name,))
    server.know(f"@cert-authority [127.0.0.*]:* {keys.public('ca')}")
    assert enter(server.target()).transport.is_authenticated()
    assert person.host_keys == []


@pytest.mark.parametrize(
    ("options", "authority", "said"),
    [
        (("-n", "web9"), "ca", "for web9, not for 127.0.0.1"),
        (("-n", "127.0.0.1", "-V", "20200101:20210101"), "ca", "expired"),
        (("-n", "127.0.0.1"), "other", "an authority that is not known"),
    ],
)
def test_a_host_certificate_that_does_not_convince_is_an_unknown_key_with_the_reason(
    start_sshd: StartSshd,
    enter: Enter,
    keys: Keys,
    tmp_path: Path,
    options: tuple[str, ...],
    authority: str,
    said: str,
) -> None:
    certificate = certify(keys, tmp_path / "c", *options, authority=authority)
    server = start_sshd(f"HostCertificate {certificate}")
    server.know(f"@cert-authority * {keys.public('ca')}")
    with pytest.raises(RemoteError, match=said) as caught:
        enter(server.target())
    assert caught.value.kind is FailureKind.HOST_KEY_UNKNOWN


def test_a_revoked_authority_convinces_nobody(
    start_sshd: StartSshd, enter: Enter, keys: Keys, tmp_path: Path
) -> None:
    server = start_sshd(f"HostCertificate {certify(keys, tmp_path / 'c', '-n', '127.0.0.1')}")
    server.know(f"@cert-authority * {keys.public('ca')}", f"@revoked * {keys.public('ca')}")
    with pytest.raises(RemoteError) as caught:
        enter(server.target())
    assert caught.value.kind is FailureKind.HOST_KEY_REVOKED


def test_a_host_key_alias_is_what_is_looked_up(start_sshd: StartSshd, enter: Enter, keys: Keys) -> None:
    server = start_sshd()
    server.know(f"web1.example {keys.public('host_ed25519')}")
    assert enter(server.target(host_key_alias="web1.example")).transport.is_authenticated()


def test_one_question_is_asked_for_many_logins_to_one_host(
    start_sshd: StartSshd, person: Person, context: LoginContext
) -> None:
    server = start_sshd()
    person.trust = HostKeyAnswer.ONCE
    target = server.target(known_hosts_files=())
    logins = []
    threads = [
        threading.Thread(target=lambda: logins.append(login(target, prompter=person, deadline=20, context=context)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(logins) == 4
    assert len(person.host_keys) == 1
    for done in logins:
        done.close()
