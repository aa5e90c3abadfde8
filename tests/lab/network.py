"""A network of its own for each lab run: a bridge that its droplets hang on, and this machine with them.

The droplets of one run see each other and this machine, and nothing else: nothing is forwarded or translated.
"""

from __future__ import annotations

import os
import subprocess
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.cache import STATE, take_lock

BRIDGE_PREFIX = "dclab"


@dataclass(slots=True)
class Network:
    """One claimed network; ``number`` is in every name and address of it.

    Attributes:
        number: 1 to 254.
        lock: The claim; it ends with the process.
    """

    number: int
    lock: int
    _free: deque[int] = field(default_factory=lambda: deque(range(10, 251)))

    @property
    def bridge(self) -> str:
        """The bridge's name on this machine."""
        return f"{BRIDGE_PREFIX}{self.number}"

    @property
    def gateway(self) -> str:
        """This machine's IPv4 address in it."""
        return f"10.213.{self.number}.1"

    @property
    def gateway6(self) -> str:
        """This machine's IPv6 address in it."""
        return f"fd00:213:{self.number}::1"

    def take_addresses(self) -> tuple[str, str]:
        """An IPv4 and an IPv6 address for one droplet, those nobody had before first.

        Raises:
            RuntimeError: All are in use.
        """
        if not self._free:
            raise RuntimeError("this lab run has 241 droplets, which is all its network has addresses for")
        host = self._free.popleft()
        return f"10.213.{self.number}.{host}", f"fd00:213:{self.number}::{host}"

    def give_back(self, address: str) -> None:
        """Free the addresses of a droplet, by its IPv4 address."""
        self._free.append(int(address.rsplit(".", 1)[1]))

    def close(self) -> None:
        """Take the bridge down and give the number back."""
        remove_link(self.bridge)
        os.close(self.lock)


def claim_network() -> Network:
    """Claim a free network and set up its bridge; what a dead run left under that number is removed.

    Raises:
        RuntimeError: All are taken.
        subprocess.CalledProcessError: The bridge cannot be made.
    """
    for number in range(1, 255):
        lock = take_lock(STATE / f"network-{number}.lock", wait=False)
        if lock is None:
            continue
        network = Network(number, lock)
        remove_link(network.bridge)
        if f"10.213.{number}." in _routes():  # somebody else's network, a VPN perhaps
            os.close(lock)
            continue
        _set_up(network)
        return network
    raise RuntimeError(f"all lab networks are in use: who holds them is in {STATE}")


def remove_link(name: str) -> None:
    """Remove a network link if it is there."""
    if Path("/sys/class/net", name).exists():
        subprocess.run(["ip", "link", "delete", name], check=True)


def _routes() -> str:
    return subprocess.run(["ip", "-4", "route"], check=True, capture_output=True, text=True).stdout


def _set_up(network: Network) -> None:
    commands = (
        f"link add {network.bridge} type bridge forward_delay 0 stp_state 0\n"
        f"address add {network.gateway}/24 dev {network.bridge}\n"
        f"address add {network.gateway6}/64 dev {network.bridge} nodad\n"
        f"link set {network.bridge} up\n"
    )
    subprocess.run(["ip", "-batch", "-"], input=commands.encode(), check=True)
    # Where this machine forwards for others, it still does not for droplets.
    Path(f"/proc/sys/net/ipv4/conf/{network.bridge}/forwarding").write_text("0")
