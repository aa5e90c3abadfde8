"""``make lab``: one droplet that stays up until Ctrl-C."""

from __future__ import annotations

import signal

from tests.lab.machine import Machine
from tests.lab.setup import say


def main() -> int:
    """Boot a droplet, say how to reach it, and wait for Ctrl-C."""
    with Machine("bookworm") as machine:
        say(f"ssh -F {machine.ssh_config} {machine.name}")
        try:
            signal.pause()
        except KeyboardInterrupt:
            say("ending")
    return 0
