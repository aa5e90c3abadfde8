"""The practice droplet's throw-away keys, and the ssh_config that reaches it and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

HOST = "demo"
"""The Host of the ssh_config."""
USER = "practice"


@dataclass(frozen=True, slots=True)
class Keys:
    """Files in a private folder."""

    host: Path
    login: Path
    config: Path


def make(folder: Path, port: int) -> Keys:
    """Make both keys, and the files that ssh and this console need to log in.

    Args:
        folder: Its owner's alone.
        port: Of the practice droplet's SSH, on 127.0.0.1.
    """
    host, login = folder / "host_key", folder / "login_key"
    public = _make_key(host)
    _make_key(login)
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {public}\n", encoding="ascii")
    config = folder / "ssh_config"
    lines = [
        f"Host {HOST}",
        "  HostName 127.0.0.1",
        f"  Port {port}",
        f"  User {USER}",
        f'  IdentityFile "{_escaped(login)}"',
        "  IdentitiesOnly yes",
        "  IdentityAgent none",
        f'  UserKnownHostsFile "{_escaped(known)}"',
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        "  PreferredAuthentications publickey",
        "  ConnectTimeout 10",
    ]
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Keys(host, login, config)


def _escaped(path: Path) -> str:
    """A path for ssh_config, where a percent sign begins a token."""
    return str(path).replace("%", "%%")


def _make_key(file: Path) -> str:
    """Write a private key of OpenSSH's format; the public one as a line."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    file.touch(0o600)
    file.write_bytes(private)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return public.decode("ascii")
