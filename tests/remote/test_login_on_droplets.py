"""Logging in to real droplets, with UFW's ``limit`` in between."""

from __future__ import annotations

import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from console.remote.address.resolve import resolve
from console.remote.errors import FailureKind, RemoteError
from console.remote.login.login import Login, LoginContext, login
from console.remote.prompts import NoPrompter
from console.remote.target import Target
from tests.lab.fixtures import MachineMaker
from tests.lab.machine import Machine

pytestmark = pytest.mark.lab


def enter(target: Target, context: LoginContext) -> Login:
    return login(target, prompter=NoPrompter(), deadline=30, context=context)


def fails(target: Target, context: LoginContext) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        enter(target, context)
    return caught.value


def limit_ssh(machine: Machine) -> None:
    """As DigitalOcean's 1-Click images do."""
    for command in ("limit 22/tcp", "--force enable"):
        machine.run(["ufw", *command.split()])


def accepted(machine: Machine) -> int:
    """Logins that its sshd let in."""
    journal = machine.run(["journalctl", "-u", "ssh.service", "-o", "cat"]).stdout.decode()
    return journal.count("Accepted publickey")


def test_a_hundred_droplets_behind_one_limited_bastion(fresh_machine: MachineMaker, context: LoginContext) -> None:
    ports = range(2001, 2101)
    bastion = fresh_machine()
    inner = fresh_machine(sshd=["MaxStartups 100"])
    redirect = "iptables -t nat -A PREROUTING -p tcp --dport 2001:2100 -j REDIRECT --to-ports 22"
    inner.run(redirect.split())  # a hundred ports are a hundred droplets to everything on this side
    limit_ssh(bastion)
    before = accepted(bastion)
    hop = resolve(bastion.name, config=str(bastion.ssh_config))
    base = resolve(inner.name, config=str(inner.ssh_config))
    target = replace(base, jumps=(hop,), host_key_alias=inner.address)
    targets = [replace(target, name=f"web{port}", port=port) for port in ports]
    began = time.monotonic()
    with ThreadPoolExecutor(100) as pool:
        logins = list(pool.map(lambda one: enter(one, context), targets))
    took = time.monotonic() - began
    assert all(done.transport.is_authenticated() for done in logins)
    assert accepted(bastion) - before == 1
    assert took < 60  # 4 s here when idle
    for done in logins:
        done.close()


def test_we_stop_before_ufw_s_limit_does(fresh_machine: MachineMaker, context: LoginContext) -> None:
    machine = fresh_machine()
    target = resolve(machine.name, config=str(machine.ssh_config))
    limit_ssh(machine)
    for _ in range(4):
        enter(target, context).close()
    error = fails(target, context)
    assert error.kind is FailureKind.LIMITED
    assert error.retry_after is not None
    ssh = ["ssh", "-F", str(machine.ssh_config), machine.name, "true"]
    assert subprocess.run(ssh, check=False, timeout=30).returncode == 0  # the fifth: a place is left for a person


def test_a_ban_by_ufw_is_a_refusal_that_names_it(fresh_machine: MachineMaker, context: LoginContext) -> None:
    machine = fresh_machine()
    target = resolve(machine.name, config=str(machine.ssh_config))
    limit_ssh(machine)
    for _ in range(6):
        with socket.socket() as knock:
            knock.settimeout(5)
            knock.connect_ex((machine.address, 22))
    error = fails(target, context)
    assert error.kind is FailureKind.REFUSED
    assert "UFW's limit" in (error.hint or "")


def test_a_rebuilt_droplet_is_a_hard_stop(fresh_machine: MachineMaker, context: LoginContext) -> None:
    machine = fresh_machine()
    target = resolve(machine.name, config=str(machine.ssh_config))
    enter(target, context).close()
    machine.rebuild_host_keys()
    error = fails(target, context)
    assert error.kind is FailureKind.HOST_KEY_CHANGED
    assert machine.fingerprints["ssh-ed25519"] in str(error)
    machine.rebuild_host_keys(trust=True)
    deadline = time.monotonic() + 20
    while (done := _try(target, context)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    done.close()


def _try(target: Target, context: LoginContext) -> Login | None:
    try:
        return enter(target, context)
    except RemoteError as error:
        if error.kind is not FailureKind.REFUSED:
            raise
        return None


def test_both_address_families_reach_a_droplet(lab_machine: Machine, context: LoginContext) -> None:
    target = resolve(lab_machine.name, config=str(lab_machine.ssh_config))
    target = replace(target, host_key_alias=lab_machine.address)
    for host in (lab_machine.address, lab_machine.address6):
        enter(replace(target, host=host), context).close()
