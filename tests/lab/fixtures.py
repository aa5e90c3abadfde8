"""What tests use of the lab: droplets shared by all, and droplets and proxies of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

from tests.lab.machine import Machine
from tests.lab.proxy import Proxy


@pytest.fixture(scope="session")
def lab_machine() -> Iterator[Machine]:
    """One bookworm droplet for all tests: leave it as it was found."""
    with Machine("bookworm") as machine:
        yield machine


@pytest.fixture(scope="session")
def lab_trixie() -> Iterator[Machine]:
    """One droplet of the newer release for all tests: its sshd punishes, so leave no penalty behind."""
    with Machine("trixie") as machine:
        yield machine


MachineMaker = Callable[..., Machine]
"""Makes a booted droplet; the arguments are ``Machine``'s."""


@pytest.fixture
def fresh_machine() -> Iterator[MachineMaker]:
    """Makes booted droplets for one test; the arguments are ``Machine``'s."""
    with ExitStack() as stack:

        def make(*args: Any, **options: Any) -> Machine:
            return stack.enter_context(Machine(*args, **options))

        yield make


class ProxyMaker(Protocol):
    """Starts a proxy before a droplet's sshd, or before any address and port."""

    def __call__(self, target: Machine | tuple[str, int], delay: float = 0.0) -> Proxy: ...


@pytest.fixture
def proxy() -> Iterator[ProxyMaker]:
    """Starts proxies for one test; ``machine.ssh_config_at(proxy.address, proxy.port)`` goes through one."""
    with ExitStack() as stack:

        def make(target: Machine | tuple[str, int], delay: float = 0.0) -> Proxy:
            address = (target.address, target.ssh_port) if isinstance(target, Machine) else target
            return stack.enter_context(Proxy(address, delay=delay))

        yield make
