"""Lending the terminal to a shell on a droplet."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from console.services.shell import shell_command
from console.settings.schema import Droplet
from console.store.paths import known_hosts_file

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

SSH_FAILED = 255
"""ssh's own exit status: it could not connect, and said why."""
AT_ONCE_S = 1.5
"""A shell that ended sooner was none: what it said is worth reading."""


def open_shell(app: ConsoleApp, droplet: Droplet) -> str:
    """Run ssh in the terminal until it ends.

    Returns:
        What to say afterwards.
    """
    accepted = None if droplet.practice is not None else known_hosts_file()
    command = shell_command(droplet, accepted_keys=accepted)
    try:
        with app.suspend(), _deaf_to_interrupts():
            status = _run(command, f"{droplet.name}: exit or ctrl+d leads back to the console")
    except SuspendNotSupported:
        return "this terminal cannot be lent to a shell"
    return f"the shell on {droplet.name} ended" + (f" with status {status}" if status > 0 else "")


def _run(command: Sequence[str], words: str) -> int:
    sys.stdout.write(f"{words}\r\n")
    sys.stdout.flush()
    began = time.monotonic()
    try:
        status = subprocess.run(command, check=False).returncode
    except OSError as error:
        sys.stdout.write(f"{command[0]} cannot be run: {error.strerror}\n")
        status = SSH_FAILED
    if status == SSH_FAILED or time.monotonic() - began < AT_ONCE_S:
        # What was said would be gone with the terminal's other screen.
        sys.stdout.write("press enter to go back to the console ")
        sys.stdout.flush()
        with contextlib.suppress(OSError):
            sys.stdin.readline()
    return status


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """ctrl+c is the shell's. A handler, as a child would inherit that a signal is ignored."""
    kept = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, kept)
