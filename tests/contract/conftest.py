from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.remote.connect import connect
from console.remote.login.login import LoginContext
from console.remote.prompts import NoPrompter, Prompter
from console.remote.target import Target
from console.remote.transport import Transport
from tests.lab.machine import Machine
from tests.lab.proxy import Proxy

Reach = Callable[..., Transport]
"""Connects to a lab droplet as a user, perhaps through a proxy."""

BOTH = [pytest.param("ssh", marks=pytest.mark.lab), "local"]


def target_of(machine: Machine, folder: Path, user: str = "root", proxy: Proxy | None = None) -> Target:
    host, port = (machine.address, machine.ssh_port) if proxy is None else (proxy.address, proxy.port)
    known_hosts = folder / f"known_hosts-{host}-{port}"
    known_hosts.write_text(machine.known_hosts_for(host, port))
    return Target(
        name=machine.name,
        host=host,
        port=port,
        user=user,
        identity_files=(str(machine.key(user)),),
        known_hosts_files=(str(known_hosts),),
        connect_timeout=15.0,
    )


@pytest.fixture
def reach(tmp_path: Path) -> Iterator[Reach]:
    """Connect, and close at the end."""
    # Many connections to one address within seconds are the tests' own doing: no limit on them.
    context = LoginContext(tmp_path / "app" / "known_hosts", clock=iter(range(0, 10**9, 100)).__next__)
    reached: list[Transport] = []

    def to(
        machine: Machine, user: str = "root", *, proxy: Proxy | None = None, prompter: Prompter | None = None
    ) -> Transport:
        target = target_of(machine, tmp_path, user, proxy)
        reached.append(connect(target, prompter=prompter or NoPrompter(), context=context, timeout=30))
        return reached[-1]

    yield to
    for transport in reached:
        transport.close()
    context.close()


@pytest.fixture
def local() -> Iterator[Transport]:
    transport = connect_locally()
    yield transport
    transport.close()


def connect_locally() -> Transport:
    from console.remote.local import LocalTransport

    return LocalTransport("here")


@pytest.fixture(params=BOTH)
def transport(request: pytest.FixtureRequest) -> Transport:
    """Every way of reaching a droplet: the same suite for all of them."""
    if request.param == "local":
        here: Transport = request.getfixturevalue("local")
        return here
    reach: Reach = request.getfixturevalue("reach")
    return reach(request.getfixturevalue("lab_machine"))


@pytest.fixture
def ssh(reach: Reach, lab_machine: Machine) -> Transport:
    return reach(lab_machine)
