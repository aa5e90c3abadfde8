from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from console.remote.address import ssh_config, ssh_config_fallback
from console.remote.address.resolve import resolve
from console.remote.address.ssh_config import Wish
from console.remote.errors import FailureKind, RemoteError
from console.remote.target import Target

HAS_SSH = shutil.which("ssh") is not None
pytestmark = pytest.mark.skipif(not HAS_SSH, reason="OpenSSH's client is not installed")


def resolved(tmp_path: Path, config: str, address: str, **wishes: object) -> Target:
    file = tmp_path / "config"
    file.write_text(config)
    return resolve(address, config=str(file), **wishes)  # type: ignore[arg-type]


def test_local_needs_nothing() -> None:
    target = resolve("local", name="here")
    assert target.local
    assert target.name == "here"


@pytest.mark.parametrize(
    ("address", "user", "host", "port"),
    [
        ("web1", None, "web1", 22),
        ("ops@web1", "ops", "web1", 22),
        ("ops@web1:2222", "ops", "web1", 2222),
        ("a@b@web1", "a@b", "web1", 22),
        ("[2001:db8::1]:2222", None, "2001:db8::1", 2222),
        ("ops@[2001:db8::1]", "ops", "2001:db8::1", 22),
        ("2001:db8::1", None, "2001:db8::1", 22),
        ("ops@fe80::1%lo", "ops", "fe80::1%lo", 22),
    ],
)
def test_addresses_are_read(tmp_path: Path, address: str, user: str | None, host: str, port: int) -> None:
    target = resolved(tmp_path, "", address)
    assert (target.host, target.port) == (host, port)
    if user is not None:
        assert target.user == user


@pytest.mark.parametrize("address", ["", "web1:0", "web1:99999", "web1:ssh", "[::1", "ops@", "web\n1", "-oX=1"])
def test_what_is_no_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(RemoteError) as caught:
        resolved(tmp_path, "", address)
    assert caught.value.kind is FailureKind.SETTINGS


CONFIG = """
Include {folder}/more
Host web1
  HostName 10.0.0.5
  User ops
  Port 2200
  IdentityFile ~/.ssh/%n-key
  IdentityFile {folder}/second
  CertificateFile {folder}/second-cert.pub
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known /dev/null
  GlobalKnownHostsFile none
  StrictHostKeyChecking accept-new
  HostKeyAlias web-one
  ConnectTimeout 7
  AddressFamily inet6
  IdentityAgent {folder}/agent-%r
Match host 10.0.0.5
  PasswordAuthentication no
Match tagged nothing
  User wrong
"""


def test_everything_in_ssh_config_counts(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("Host *\n  BindAddress 10.9.9.9\n")
    config = CONFIG.format(folder=tmp_path)
    if b"9.2" in subprocess.run(["ssh", "-V"], capture_output=True, check=True).stderr:
        config = config.split("Match tagged")[0]  # this ssh does not know it, and says so
    target = resolved(tmp_path, config, "web1")
    assert (target.host, target.port, target.user) == ("10.0.0.5", 2200, "ops")
    assert target.identity_files == (str(Path.home() / ".ssh/web1-key"), f"{tmp_path}/second")
    assert target.certificate_files == (f"{tmp_path}/second-cert.pub",)
    assert target.identities_only
    assert target.known_hosts_files == (f"{tmp_path}/known", "/dev/null")
    assert target.strict_host_key_checking == "accept-new"
    assert target.host_key_alias == "web-one"
    assert target.connect_timeout == 7
    assert target.address_family == "inet6"
    assert target.bind_address == "10.9.9.9"
    assert target.identity_agent == f"{tmp_path}/agent-ops"
    assert target.preferred_authentications == ("publickey", "keyboard-interactive")
    assert target.source == "ssh -G"


def test_without_a_word_in_the_configuration_ssh_s_own_defaults_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    target = resolved(tmp_path, "", "web1")
    home = str(Path.home())
    assert f"{home}/.ssh/id_ed25519" in target.identity_files
    assert target.known_hosts_files[0] == f"{home}/.ssh/known_hosts"
    assert "/etc/ssh/ssh_known_hosts" in target.known_hosts_files
    assert target.identity_agent == "/run/agent"
    assert target.strict_host_key_checking == "ask"
    assert target.connect_timeout == 15
    assert target.preferred_authentications == ("publickey", "keyboard-interactive", "password")
    assert "ssh-ed25519" in target.host_key_algorithms
    assert (target.jumps, target.proxy_command, target.bind_address) == ((), None, None)


@pytest.mark.parametrize(
    ("said", "expected"),
    [("none", None), ("SSH_AUTH_SOCK", "/run/agent"), ("$OTHER", "/run/other"), ("${OTHER}x", "/run/otherx")],
)
def test_the_agent_is_the_one_that_ssh_config_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, expected: str | None
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    monkeypatch.setenv("OTHER", "/run/other")
    assert resolved(tmp_path, f"Host *\n  IdentityAgent {said}\n", "web1").identity_agent == expected


@pytest.mark.parametrize(
    ("said", "meant"), [("yes", "yes"), ("no", "no"), ("off", "no"), ("accept-new", "accept-new")]
)
def test_strict_host_key_checking_has_one_spelling(tmp_path: Path, said: str, meant: str) -> None:
    target = resolved(tmp_path, f"StrictHostKeyChecking {said}\n", "web1")
    assert target.strict_host_key_checking == meant


JUMPS = """
Host web1
  ProxyJump ops@bastion:2200,inner
Host bastion
  HostName 203.0.113.5
  ProxyJump outer
Host inner
  HostName 10.1.1.1
  User deep
  ProxyJump elsewhere
Host outer
  ProxyCommand nc -x proxy %h %p
Host direct
  ProxyJump none
Host loop
  ProxyJump loop2
Host loop2
  ProxyJump loop
"""


def test_a_chain_of_jump_hosts_is_what_ssh_would_make_of_it(tmp_path: Path) -> None:
    target = resolved(tmp_path, JUMPS, "web1")
    assert [(hop.name, hop.host, hop.port, hop.jumps) for hop in target.jumps] == [
        ("outer", "outer", 22, ()),
        ("bastion", "203.0.113.5", 2200, ()),
        ("inner", "10.1.1.1", 22, ()),
    ]
    assert [hop.user for hop in target.jumps[1:]] == ["ops", "deep"]
    assert target.jumps[0].proxy_command == "nc -x proxy outer 22"
    assert target.proxy_command is None


def test_none_means_no_jump_host(tmp_path: Path) -> None:
    assert resolved(tmp_path, JUMPS, "direct").jumps == ()
    assert resolved(tmp_path, JUMPS, "web1", jump="none").jumps == ()


def test_a_circle_of_jump_hosts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="jump hosts") as caught:
        resolved(tmp_path, JUMPS, "loop")
    assert caught.value.kind is FailureKind.SETTINGS


def test_the_settings_go_before_ssh_config(tmp_path: Path) -> None:
    target = resolved(
        tmp_path,
        "Host web1\n  IdentityFile /from/config\n  User ops\n  ConnectTimeout 3\n",
        "root@web1:99",
        name="my web",
        identities=("~/mine", "/with space/key"),
        jump="bastion",
        connect_timeout=4.0,
    )
    assert (target.name, target.user, target.port) == ("my web", "root", 99)
    assert target.identity_files == (str(Path.home() / "mine"), "/with space/key", "/from/config")
    assert [hop.host for hop in target.jumps] == ["bastion"]
    assert target.connect_timeout == target.jumps[0].connect_timeout == 4.0


def test_a_mistake_in_ssh_config_is_told_in_ssh_s_words(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="line 2") as caught:
        resolved(tmp_path, "Host *\n  Prot 22\n", "web1")
    assert caught.value.kind is FailureKind.SETTINGS


def test_a_match_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_config, "TIMEOUT", 0.3)
    with pytest.raises(RemoteError, match="took longer"):
        resolved(tmp_path, 'Match exec "sleep 60"\n  User x\n', "web1")


@pytest.fixture
def without_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_config, "ssh_binary", lambda: None)


PLAIN = """
Host web1
  HostName 10.0.0.5
  Port 2200
  User ops
  IdentityFile ~/.ssh/special
  ProxyJump jumper@bastion:99
  StrictHostKeyChecking yes
  UserKnownHostsFile /known
Host *
  IdentitiesOnly yes
Match host 10.0.0.5 user ops
  ServerAliveInterval 5
"""


@pytest.mark.usefixtures("without_ssh")
def test_without_openssh_the_plain_parts_mean_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fallback = resolved(tmp_path, PLAIN, "web1")
    monkeypatch.undo()
    real = resolved(tmp_path, PLAIN, "web1")
    assert (fallback.source, real.source) == ("ssh_config", "ssh -G")
    for attribute in ("host", "port", "user", "identity_files", "identities_only", "strict_host_key_checking"):
        assert getattr(fallback, attribute) == getattr(real, attribute), attribute
    assert fallback.known_hosts_files[0] == real.known_hosts_files[0] == "/known"
    assert [(hop.user, hop.host, hop.port) for hop in fallback.jumps] == [("jumper", "bastion", 99)]


@pytest.mark.usefixtures("without_ssh")
@pytest.mark.parametrize(
    "line", ["Include more", "Match tagged a", "Match localnetwork 10.0.0.0/8", "match version 9.9"]
)
def test_without_openssh_what_only_it_understands_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(RemoteError, match="config:2: only OpenSSH understands") as caught:
        resolved(tmp_path, f"User x\n{line}\n", "web1")
    assert caught.value.kind is FailureKind.SETTINGS


def test_without_openssh_the_defaults_are_ssh_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    answer = ssh_config_fallback.read(Wish("web1"))
    assert answer.one("user") == os.environ.get("LOGNAME", answer.one("user"))
    assert answer.one("port") == "22"
    assert "~/.ssh/id_ed25519" in answer.all("identityfile")
