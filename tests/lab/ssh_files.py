"""Host keys, known_hosts lines and OpenSSH configurations for lab droplets."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

HOST_KEY_TYPES = ("ed25519", "ecdsa")
"""RSA is left out: making one takes longer than the boot."""


def make_host_keys(etc_ssh: Path) -> None:
    """Make new host keys in a droplet's /etc/ssh, in place of the old ones."""
    for kind in HOST_KEY_TYPES:
        path = etc_ssh / f"ssh_host_{kind}_key"
        path.unlink(missing_ok=True)
        command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "lab", "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def known_hosts_lines(etc_ssh: Path, host: str, port: int) -> str:
    """The known_hosts lines for a droplet, given its /etc/ssh and how it is reached."""
    name = host if port == 22 else f"[{host}]:{port}"
    keys = (path.read_text().split() for path in sorted(etc_ssh.glob("ssh_host_*_key.pub")))
    return "".join(f"{name} {kind} {blob}\n" for kind, blob, *_ in keys)


def fingerprints(etc_ssh: Path) -> dict[str, str]:
    """The SHA256 fingerprints of a droplet's host keys, as ssh shows them, by the kind of key."""
    found = {}
    for path in sorted(etc_ssh.glob("ssh_host_*_key.pub")):
        kind, blob, *_ = path.read_text().split()
        digest = hashlib.sha256(base64.b64decode(blob)).digest()
        found[kind] = "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
    return found


def write_ssh_config(
    path: Path, name: str, address: str, port: int, known_hosts: str, keys: Mapping[str, Path]
) -> None:
    """Write an OpenSSH configuration, and its known_hosts beside it (``PATH.known_hosts``).

    It names the droplet ``NAME`` for root and ``NAME-USER`` for every other account with a key.
    """
    known = path.with_name(path.name + ".known_hosts")
    known.write_text(known_hosts)
    blocks = [
        f"Host {name if user == 'root' else f'{name}-{user}'}\n"
        f"    HostName {address}\n    Port {port}\n    User {user}\n    IdentityFile {key}\n"
        for user, key in keys.items()
    ]
    blocks.append(
        f"Host {name} {name}-*\n"
        f"    HostName {address}\n    Port {port}\n    IdentitiesOnly yes\n    IdentityAgent none\n"
        f"    UserKnownHostsFile {known}\n    GlobalKnownHostsFile /dev/null\n    StrictHostKeyChecking yes\n"
    )
    path.write_text("".join(blocks))
