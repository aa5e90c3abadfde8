from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from console.domain.facts.read import read_facts
from remote_scripts import facts
from remote_scripts.facts_parts import facts_firewall
from remote_scripts.facts_parts.facts_part import Part
from tests.remote_scripts.facts_lab import Pretended


@pytest.fixture
def droplet(tmp_path: Path) -> Pretended:
    return Pretended(tmp_path)


def test_an_empty_droplet_gives_a_whole_document_of_reasons(droplet: Pretended) -> None:
    facts.main(droplet.call)
    document = droplet.document()
    assert document["schema"] == "facts/1"
    missing = document["unavailable"]
    for part in facts.PARTS:
        assert part in document or f"/{part}" in missing
    read = read_facts(document)
    assert read.os is None
    assert read.why("/os") == missing["/os"]
    assert read.python is not None


def test_one_part_that_breaks_breaks_no_other(droplet: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(part: Part) -> Any:
        raise ZeroDivisionError("so what")

    monkeypatch.setitem(facts.PARTS, "os", broken)
    droplet.file("/proc/sys/kernel/osrelease", "6.1\n")
    facts.main(droplet.call)
    document = droplet.document()
    assert document["unavailable"]["/os"] == "ZeroDivisionError: so what"
    assert document["kernel"]["release"] == "6.1"


def test_a_part_that_hangs_is_left_out(droplet: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hanging(part: Part) -> Any:
        release.wait(30)

    monkeypatch.setitem(facts.PARTS, "disks", hanging)
    monkeypatch.setattr(facts, "PATIENCE", 0.5)
    facts.main(droplet.call)
    release.set()
    assert droplet.document()["unavailable"]["/disks"] == "it was not read within 0.5 s"


def test_an_answer_too_long_for_a_line_loses_its_long_texts_and_says_so(
    droplet: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts_firewall, "_LIMIT", 8 << 20)
    droplet.file("/proc/sys/kernel/osrelease", "6.1\n")
    droplet.tool("nft", "\x01" * (5 << 20))
    facts.main(droplet.call)
    document = droplet.document()
    assert "nft" not in document["firewall"]
    assert "do not fit" in document["unavailable"]["/firewall"]
    assert document["kernel"]["release"] == "6.1"


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from remote_scripts import facts
from remote_scripts.call import Call
facts.main(Call({}, sys.stdout.buffer))
"""


@pytest.mark.lab
def test_a_real_droplet(fresh_machine: Any) -> None:
    machine = fresh_machine("bookworm", docker=True)
    for rule in (
        ["allow", "22/tcp"],
        [
            "allow",
            "proto",
            "tcp",
            "from",
            "10.0.0.0/8",
            "to",
            "any",
            "port",
            "8000:8002",
            "comment",
            "triton's"[:6],
        ],
        ["deny", "in", "on", "host0", "to", "any", "port", "8001", "proto", "tcp"],
        ["--force", "enable"],
    ):
        machine.run(["ufw", *rule])
    scripts = Path(facts.__file__).parent
    for file in scripts.rglob("*.py"):
        machine.write(f"/tmp/facts/remote_scripts/{file.relative_to(scripts)}", file.read_bytes())

    def ask(*before: str) -> Any:
        command = [*before, "python3", "-I", "-S", "-c", PROGRAM, "/tmp/facts"]
        return read_facts(json.loads(machine.run(command).stdout))

    found = ask()
    assert found.os.id == "debian"
    assert found.units.state == "running"
    assert found.units.units["ssh.service"].active == "active"
    ssh = next(one for one in found.listeners if one.port == 22 and one.address == "0.0.0.0")
    assert (ssh.process, ssh.unit) == ("sshd", "ssh.service")
    assert found.firewall.ufw.enabled is True
    assert [(rule.action, rule.port, rule.interface) for rule in found.firewall.ufw.rules] == [
        ("allow", "22", None),
        ("allow", "8000:8002", None),
        ("deny", "8001", "host0"),
    ]
    assert found.firewall.ufw.rules[1].comment == "triton"
    assert "ufw-user-input" in found.firewall.iptables
    assert found.resolver.mode == "stub"
    assert "Link 2 (host0)" in found.resolver.resolved
    assert found.docker.running is True
    assert found.docker.version
    assert found.disks[0].mount == "/"
    assert found.triton == ()

    other = ask("runuser", "-u", "nobody", "--")
    assert other.uid != 0
    assert other.firewall.ufw.rules == ()
    assert other.why("/firewall/ufw/rules") == "/etc/ufw/user.rules: Permission denied"
    assert "only root sees" in other.why("/listeners/pid")
    assert "permission denied" in other.why("/docker/version").lower()
