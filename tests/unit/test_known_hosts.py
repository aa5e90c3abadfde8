from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from console.remote.host_keys import known_hosts
from console.remote.host_keys.known_hosts import Marker, Verdict
from console.remote.ssh import ssh_wire


def key(seed: int, key_type: str = "ssh-ed25519") -> bytes:
    return ssh_wire.string(key_type) + ssh_wire.string(bytes([seed]) * 32)


def entry(hosts: str, blob: bytes, marker: str = "") -> str:
    words = (marker, hosts, ssh_wire.key_type(blob), base64.b64encode(blob).decode())
    return " ".join(word for word in words if word) + "\n"


def check(tmp_path: Path, text: str, name: str, blob: bytes, bare: str = "web1") -> known_hosts.Finding:
    file = tmp_path / "known_hosts"
    file.write_text(text)
    return known_hosts.check_key(known_hosts.read([str(file)])[0], name, bare, blob)


def test_lines_of_every_kind_are_read_and_broken_ones_noted(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(
        "# a comment\n\n"
        + entry("web1,10.0.0.1", key(1)).strip()
        + " root@web1 a comment\n"
        + entry("*.example", key(2), "@cert-authority")
        + entry("*", key(3), "@revoked")
        + "web2 ssh-ed25519 !!!\n"
        + "web3 ssh-rsa "
        + base64.b64encode(key(1)).decode()
        + "\n@marker web4 ssh-ed25519 AAAA\nweb5\n\x00\xff\n"
    )
    lines, notes = known_hosts.read([str(file), str(tmp_path / "absent")])
    assert [(line.marker, line.hosts, line.number) for line in lines] == [
        (Marker.HOST, "web1,10.0.0.1", 3),
        (Marker.AUTHORITY, "*.example", 4),
        (Marker.REVOKED, "*", 5),
    ]
    assert [note.split(": ")[0] for note in notes] == [f"{file}:{number}" for number in (6, 7, 8, 9, 10)]


def test_the_name_under_which_ssh_keeps_a_host() -> None:
    assert known_hosts.lookup_name("Web1.Example", 22, None) == "web1.example"
    assert known_hosts.lookup_name("Web1", 2222, None) == "[web1]:2222"
    assert known_hosts.lookup_name("10.0.0.1", 2222, "Alias") == "alias"


def test_a_key_is_known_unknown_changed_or_revoked(tmp_path: Path) -> None:
    text = entry("web1", key(1))
    assert check(tmp_path, text, "web1", key(1)).verdict is Verdict.KNOWN
    assert check(tmp_path, text, "web2", key(1), "web2").verdict is Verdict.UNKNOWN
    changed = check(tmp_path, text, "web1", key(2))
    assert changed.verdict is Verdict.CHANGED
    assert [line.number for line in changed.lines] == [1]
    assert check(tmp_path, text + entry("web*", key(1), "@revoked"), "web1", key(1)).verdict is Verdict.REVOKED


def test_a_key_of_another_type_is_unknown_and_names_the_known_types(tmp_path: Path) -> None:
    finding = check(tmp_path, entry("web1", key(1, "ssh-rsa")), "web1", key(1))
    assert finding.verdict is Verdict.UNKNOWN
    assert finding.other_types == ("ssh-rsa",)


def test_a_second_line_may_know_the_key_that_the_first_contradicts(tmp_path: Path) -> None:
    assert check(tmp_path, entry("web1", key(1)) + entry("web1", key(2)), "web1", key(2)).verdict is Verdict.KNOWN


def test_without_a_line_for_the_port_the_host_alone_vouches_but_contradicts_nothing(tmp_path: Path) -> None:
    text = entry("web1", key(1))
    assert check(tmp_path, text, "[web1]:2222", key(1)).verdict is Verdict.KNOWN
    assert check(tmp_path, text, "[web1]:2222", key(2)).verdict is Verdict.UNKNOWN


def test_an_authority_is_no_host_key(tmp_path: Path) -> None:
    text = entry("web1", key(1), "@cert-authority")
    assert check(tmp_path, text, "web1", key(1)).verdict is Verdict.UNKNOWN


NAMES = ("web1", "web12", "web1.example", "[web1]:2222", "10.0.0.1", "[10.0.0.1]:2222", "::1")
PATTERNS = st.lists(
    st.builds(
        str.__add__,
        st.sampled_from(("", "", "!")),
        st.sampled_from(
            (*NAMES, "*", "web?", "web*", "*.example", "[*]:2222", "[web1]:*", "10.0.0.*", "WEB1", "w[e]b1")
        ),
    ),
    min_size=1,
    max_size=4,
).map(",".join)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is the oracle")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hosts=PATTERNS, name=st.sampled_from(NAMES))
@example(hosts="!web1,*", name="web1")
@example(hosts="*,!web1", name="web1")
def test_patterns_mean_what_they_mean_to_ssh_keygen(tmp_path: Path, hosts: str, name: str) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(entry(hosts, key(1)))
    found = subprocess.run(["ssh-keygen", "-F", name, "-f", str(file)], capture_output=True, check=False)
    assert known_hosts.matches(hosts, name) == (found.returncode == 0)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is the oracle")
def test_names_hashed_by_ssh_keygen_are_found(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(entry("web1", key(1)) + entry("[web1]:2222", key(2)))
    subprocess.run(["ssh-keygen", "-H", "-f", str(file)], check=True, capture_output=True)
    lines, notes = known_hosts.read([str(file)])
    assert notes == []
    assert all(line.hosts.startswith("|1|") for line in lines)
    assert known_hosts.check_key(lines, "web1", "web1", key(1)).verdict is Verdict.KNOWN
    assert known_hosts.check_key(lines, "[web1]:2222", "web1", key(2)).verdict is Verdict.KNOWN
    assert known_hosts.check_key(lines, "web2", "web2", key(1)).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("hosts", ["|1|", "|1|a|b", "|1|====|====", "|1|YQ==|YQ==|x", "|2|YQ==|YQ=="])
def test_a_broken_hash_matches_nothing(hosts: str) -> None:
    assert not known_hosts.matches(hosts, "web1")


def test_what_is_added_is_found_again_and_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "app" / "known_hosts"
    known_hosts.add(file, "web1", key(1))
    file.write_text(file.read_text() + "# by hand, without an end of line")
    known_hosts.add(file, "[web2]:2222", key(2))
    known_hosts.add(file, "[web2]:2222", key(2))
    assert file.read_text() == (
        entry("web1", key(1)) + "# by hand, without an end of line\n" + entry("[web2]:2222", key(2))
    )
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["known_hosts"]


@given(data=st.binary(max_size=400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_survived(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "known_hosts"
    file.write_bytes(data)
    for line in known_hosts.read([str(file)])[0]:
        assert line.where.startswith(str(file))
