"""Logging in: from a target to an authenticated connection."""

from __future__ import annotations

from pathlib import Path

from console.remote.paramiko_api import Transport
from console.remote.prompts import Prompter
from console.remote.target import Target


class LoginContext:
    """What all logins of this process share: limits, jump hosts, what was typed, accepted host keys."""

    def __init__(self, app_known_hosts: Path) -> None:
        self.app_known_hosts = app_known_hosts

    def close(self) -> None:
        """End the jump hosts' logins and forget what was typed."""


class Login:
    """An authenticated connection to a droplet.

    Attributes:
        transport: Authenticated; open channels on it.
        target: What was logged in to.
    """

    def __init__(self, transport: Transport, target: Target) -> None:
        self.transport = transport
        self.target = target

    def close(self) -> None:
        """End the connection. A jump host that others use stays."""
        self.transport.close()


def login(target: Target, *, prompter: Prompter, deadline: float, context: LoginContext) -> Login:
    """Log in to ``target``.

    Args:
        target: Where; not ``local``.
        prompter: Asked where a person must decide or type.
        deadline: Seconds for all of it, without the time that a person takes to answer.
        context: Shared by all logins of this process.

    Raises:
        RemoteError: Of any kind up to LOST, never by itself tried again.
    """
    raise NotImplementedError
