"""What ssh itself would do for a name: ``ssh -G``, which knows Include, Match and everything else in ssh_config."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.domain.telemetry.text import printable
from console.remote.errors import FailureKind, RemoteError

TIMEOUT = 10.0
"""Seconds; Match exec runs the user's own commands, and CanonicalizeHostname asks the name server."""

_LISTS = frozenset({"identityfile", "certificatefile"})
"""Keys that stand on several lines."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the settings or the command line say, over what ssh_config says.

    Attributes:
        host: A name, an address, or a ``Host`` of ssh_config.
        user: Login name.
        port: Port.
        identities: Private key files.
        jump: As ProxyJump has it; "none" for none.
        config: Another ssh_config file, for this alone.
    """

    host: str
    user: str | None = None
    port: int | None = None
    identities: tuple[str, ...] = ()
    jump: str | None = None
    config: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Options by lower-case name, each with its values in order."""

    options: Mapping[str, tuple[str, ...]]
    source: str

    def one(self, name: str, default: str = "") -> str:
        """The value of an option."""
        return self.options.get(name, (default,))[0]

    def all(self, name: str) -> tuple[str, ...]:
        """The values of an option that can be given several times."""
        return self.options.get(name, ())


def ssh_binary() -> str | None:
    """Where OpenSSH's client is, if it is installed."""
    return shutil.which("ssh")


def ask_ssh(ssh: str, wish: Wish) -> Answer:
    """Have ssh resolve a name.

    Raises:
        RemoteError: SETTINGS: ssh refuses the name or its configuration, in its own words.
    """
    command = [ssh, "-G", *_arguments(wish), "--", wish.host]
    try:
        status, output, said = _run(command)
    except subprocess.TimeoutExpired as error:
        raise RemoteError(
            FailureKind.SETTINGS,
            f"{wish.host}: `ssh -G` took longer than {TIMEOUT:.0f} s.",
            hint="A `Match exec` in ssh_config hangs, or a name server does not answer.",
        ) from error
    except (OSError, ValueError) as error:
        raise RemoteError(
            FailureKind.SETTINGS, f"{printable(wish.host)}: `ssh -G` cannot be run: {error}."
        ) from error
    if status != 0:
        said = printable(" ".join(said.split()), 400)
        raise RemoteError(
            FailureKind.SETTINGS,
            f"{printable(wish.host)}: ssh does not accept this: {said}",
            hint=f"Try it by hand: ssh -G {printable(wish.host)}",
        )
    return Answer(parse(output), "ssh -G")


def _run(command: Sequence[str]) -> tuple[int, str, str]:
    """Run ssh in a session of its own, so that what `Match exec` started can be ended with it."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=TIMEOUT)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return process.returncode, output, errors


def _arguments(wish: Wish) -> Sequence[str]:
    arguments: list[str] = []
    if wish.config is not None:
        arguments += ["-F", wish.config]
    if wish.user is not None:
        arguments += ["-l", wish.user]
    if wish.port is not None:
        arguments += ["-p", str(wish.port)]
    if wish.jump is not None:
        arguments += ["-o", f"ProxyJump={wish.jump}"]
    for identity in wish.identities:
        arguments += ["-o", f'IdentityFile="{identity}"']
    return arguments


def parse(output: str) -> dict[str, tuple[str, ...]]:
    """Read what ``ssh -G`` prints: a name and its value a line."""
    options: dict[str, tuple[str, ...]] = {}
    for line in output.splitlines():
        name, _, value = line.partition(" ")
        name = name.lower()
        if name in _LISTS:
            options[name] = (*options.get(name, ()), value)
        elif name and name not in options:
            options[name] = (value,)
    return options
