"""What a new droplet's root holds before its first boot: its name, address, resolver, sshd lines and keys."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab import ssh_files


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a droplet is.

    Attributes:
        name: Its host name.
        address: Its IPv4 address, in a /24.
        address6: Its IPv6 address, in a /64.
        gateway: This machine's IPv4 address, which is its default route.
    """

    name: str
    address: str
    address6: str
    gateway: str


WRITE = """
set -e
mkdir -p "$(dirname "$1")"
cat >"$1"
chmod "$2" "$1"
test "$3" = root || chown "$3:" "$1" "$(dirname "$1")"
"""


def write_command(path: str, mode: int, owner: str) -> list[str]:
    """The command, run inside a root, that writes its standard input to a file there."""
    return ["sh", "-c", WRITE, "sh", path, f"{mode:o}", owner]


def write_into(root: Path, path: str, content: bytes, mode: int = 0o644, owner: str = "root") -> None:
    """Write a file in a root that is not booted; links mean what they mean inside."""
    command = ["chroot", str(root), *write_command(path, mode, owner)]
    subprocess.run(command, input=content, check=True, capture_output=True)


def prepare(
    root: Path, identity: Identity, keys: Mapping[str, Path], *, resolved: bool, sshd: Sequence[str]
) -> None:
    """Make a root that is not booted into a droplet of its own."""
    name = identity.name
    write_into(root, "/etc/hostname", f"{name}\n".encode())
    write_into(root, "/etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {name}\n".encode())
    write_into(root, "/etc/machine-id", f"{secrets.token_hex(16)}\n".encode(), 0o444)
    write_into(root, "/etc/systemd/network/80-container-host0.network", _network(identity).encode())
    write_into(root, "/etc/ssh/sshd_config.d/10-test.conf", "".join(f"{line}\n" for line in sshd).encode())
    _set_resolver(root, resolved, identity.gateway)
    for user, key in keys.items():
        home = "/root" if user == "root" else f"/home/{user}"
        public = key.with_suffix(".pub").read_bytes()
        write_into(root, f"{home}/.ssh/authorized_keys", public, 0o600, user)
    ssh_files.make_host_keys(root / "etc/ssh")


def _network(identity: Identity) -> str:
    return (
        f"[Match]\nName=host0\n\n[Network]\nAddress={identity.address}/24\nAddress={identity.address6}/64\n"
        f"Gateway={identity.gateway}\nIPv6AcceptRA=no\nLLMNR=no\nMulticastDNS=no\n"
    )


def _set_resolver(root: Path, resolved: bool, nameserver: str) -> None:
    verb = "enable" if resolved else "disable"
    command = ["systemctl", f"--root={root}", "--quiet", verb, "systemd-resolved.service"]
    subprocess.run(command, check=True, capture_output=True)
    resolv_conf = root / "etc/resolv.conf"
    resolv_conf.unlink(missing_ok=True)
    if resolved:
        resolv_conf.symlink_to("../run/systemd/resolve/stub-resolv.conf")
    else:
        resolv_conf.write_text(f"nameserver {nameserver}\n")
