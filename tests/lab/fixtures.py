"""What tests use of the lab: droplets shared by all, and droplets and proxies of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.lab.machine import Machine


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


@pytest.fixture
def fresh_machine() -> Iterator[Callable[..., Machine]]:
    """Makes booted droplets for one test; the arguments are ``Machine``'s."""
    with ExitStack() as stack:

        def make(*args: Any, **options: Any) -> Machine:
            return stack.enter_context(Machine(*args, **options))

        yield make
