from __future__ import annotations

import subprocess

import pytest

from tests.lab.machine import Machine

pytestmark = pytest.mark.lab


def ssh(machine: Machine, user: str, command: str) -> subprocess.CompletedProcess[str]:
    host = machine.name if user == "root" else f"{machine.name}-{user}"
    argv = ["ssh", "-F", str(machine.ssh_config), "-o", "BatchMode=yes", host, command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)


def test_root_logs_in_with_its_key_and_the_known_host_key(lab_machine: Machine) -> None:
    assert ssh(lab_machine, "root", "id -u; uname -n").stdout.split() == ["0", lab_machine.name]
