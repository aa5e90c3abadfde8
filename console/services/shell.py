"""The command that opens a shell on a droplet: the real ssh, to the same target as the console's own login."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from console.settings.schema import Droplet


def shell_command(
    droplet: Droplet,
    *,
    accepted_keys: Path | None = None,
    known_hosts: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> list[str]:
    """The argument list to run in the terminal.

    Args:
        droplet: Whose shell.
        accepted_keys: The file with host keys that were accepted in the console; used where it exists.
        known_hosts: The user's own files, in order; ssh's defaults where empty.
        environment: ``SHELL`` says what a shell on this machine is.
    """
    if droplet.host == "local" or droplet.name == "local":
        return [environment.get("SHELL") or "/bin/sh"]
    words = ["ssh"]
    if droplet.practice is not None:
        words += ["-F", droplet.practice.ssh_config]
    if droplet.port is not None:
        words += ["-p", str(droplet.port)]
    for identity in droplet.identity:
        words += ["-i", str(Path(identity).expanduser())]
    if droplet.jump == "none":
        words += ["-o", "ProxyJump=none"]
    elif droplet.jump:
        words += ["-J", droplet.jump]
    if accepted_keys is not None and accepted_keys.exists():
        files = [*(known_hosts or ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")), str(accepted_keys)]
        words += ["-o", "UserKnownHostsFile=" + " ".join(f'"{file}"' for file in files)]
    host = droplet.host or droplet.name
    return [*words, "--", f"{droplet.user}@{host}" if droplet.user else host]
