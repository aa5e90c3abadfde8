"""``status`` on many droplets behind one bastion, and on more logins to one address than are allowed at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.machine import Machine

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def agent(lab_machine: Machine, tmp_path: Path) -> Iterator[Path]:
    """An agent that holds the key: the jump host's own login has no key in the settings."""
    socket = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        add = ["ssh-add", "-q", str(lab_machine.key())]
        subprocess.run(add, check=True, env={**os.environ, "SSH_AUTH_SOCK": str(socket)})
        yield socket
        process.terminate()


def status(folder: Path, droplets: dict[str, dict[str, str]], known_hosts: str, agent: Path) -> tuple[Any, str]:
    config = folder / "config.yaml"
    config.write_text(json.dumps({"droplets": droplets}))
    state = folder / "state"
    state.mkdir(mode=0o700)
    (state / "known_hosts").write_text(known_hosts)
    environment = {**os.environ, "DROPLET_CONSOLE_STATE": str(state), "SSH_AUTH_SOCK": str(agent)}
    call = [sys.executable, "-m", "console", "status", "@all", "--json", "--config", str(config)]
    done = subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=170)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)["droplets"], done.stderr


def test_droplets_behind_one_bastion_do_not_wait_for_each_other(
    lab_machine: Machine, tmp_path: Path, agent: Path
) -> None:
    inner = [f"127.0.0.{number}" for number in range(2, 10)]
    known = lab_machine.known_hosts + "".join(lab_machine.known_hosts_for(host, 22) for host in inner)
    jump = f"root@{lab_machine.address}"
    droplets = {
        f"d{number}": {"host": host, "user": "root", "group": "all", "jump": jump}
        for number, host in enumerate(inner)
    }
    shown, said = status(tmp_path, droplets, known, agent)
    assert [one.get("error") for one in shown] == [None] * len(inner)
    assert "logins in 30 s" not in said


def test_more_logins_to_one_address_than_are_allowed_at_once_wait_for_their_turn(
    lab_machine: Machine, tmp_path: Path, agent: Path
) -> None:
    place = {"host": lab_machine.address, "user": "root", "group": "all"}
    droplets = {f"d{number}": place for number in range(6)}
    shown, said = status(tmp_path, droplets, lab_machine.known_hosts, agent)
    assert [one.get("error") for one in shown] == [None] * 6
    assert said.count("4 logins in 30 s is what a droplet's own limits allow; trying again in ") >= 1
