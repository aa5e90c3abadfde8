"""From a resolved target to a connected transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.remote.prompts import Prompter
from console.remote.target import Target
from console.remote.transport import Transport

if TYPE_CHECKING:
    from console.remote.login.login import LoginContext


def connect(target: Target, *, prompter: Prompter, context: LoginContext, timeout: float) -> Transport:
    """Reach ``target``.

    Args:
        target: Where; ``target.local`` for this very machine.
        prompter: Asked where a person must decide or type.
        context: Shared by all logins of this process.
        timeout: Seconds for all of it, without the time a person takes to answer.

    Raises:
        RemoteError: As ``console.remote.login.login.login``.
    """
    if target.local:
        from console.remote.local import LocalTransport

        return LocalTransport(target.name)
    # These load paramiko, which takes a quarter of a second that `--help` must not.
    from console.remote.login.login import login
    from console.remote.ssh.ssh_transport import SshTransport

    return SshTransport(login(target, prompter=prompter, deadline=timeout, context=context))
