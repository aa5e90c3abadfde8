"""The accounts on a lab droplet: one for each way of logging in, and of being refused.

Passwords here open nothing but lab droplets, which only the machine that runs them can reach.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class User:
    """One account.

    Attributes:
        name: Its login name.
        why: What it is there to show.
        key: Whether the lab's key for it is accepted.
        password: Its password, or None where it has none that works.
        groups: Further groups.
        shell: Its login shell.
        sudoers: What stands after its name in sudoers, or None.
        sshd: Lines for its ``Match User`` block.
        bashrc: What its ``~/.bashrc`` begins with.
    """

    name: str
    why: str
    key: bool = True
    password: str | None = None
    groups: tuple[str, ...] = ()
    shell: str = "/bin/bash"
    sudoers: str | None = None
    sshd: tuple[str, ...] = ()
    bashrc: str = ""


NOT_READY = "Please wait while we get your droplet ready..."
"""What DigitalOcean's 1-Click images answer every command with until the first boot is through."""

USERS = (
    User("root", "the usual one on a droplet"),
    User("op", "sudo without a password", sudoers="ALL=(ALL:ALL) NOPASSWD: ALL"),
    User("opw", "sudo with a password", password="opw pass-1", groups=("sudo",)),
    User("plain", "no sudo, no journal", password="plain pass-1"),
    User("logs", "no sudo, but may read the journal", groups=("adm", "systemd-journal")),
    User("pw", "password login only", key=False, password="pw pass-1", sshd=("PasswordAuthentication yes",)),
    User(
        "kbd",
        "keyboard-interactive login only",
        key=False,
        password="kbd pass-1",
        sshd=("KbdInteractiveAuthentication yes", "AuthenticationMethods keyboard-interactive"),
    ),
    User(
        "factor",
        "a key, and then a second factor",
        password="factor pass-1",
        sshd=("KbdInteractiveAuthentication yes", "AuthenticationMethods publickey,keyboard-interactive"),
    ),
    User("nobodyhome", "a shell that refuses", shell="/usr/sbin/nologin"),
    User(
        "noisy", "a shell that talks before every command", bashrc='echo "Welcome to $(hostname)!"; echo oops >&2\n'
    ),
    User("fish", "a shell that is not POSIX", shell="/usr/bin/fish"),
    User("tcsh", "a shell of the other family", shell="/bin/tcsh"),
    User("booting", "a droplet whose first boot is not through", sshd=(f'ForceCommand echo "{NOT_READY}"',)),
)
"""Every account. ``PASSWORDS`` has what to type."""

PASSWORDS = {user.name: user.password for user in USERS if user.password is not None}


def sshd_matches() -> str:
    """The ``Match User`` blocks of all accounts, for sshd_config.d."""
    blocks = [
        "\n    ".join([f"Match User {user.name}", *user.sshd]) + "\nMatch all\n" for user in USERS if user.sshd
    ]
    return "".join(blocks)


def account_script() -> str:
    """The shell script, run inside a root that is being built, that makes all accounts."""
    lines = ["set -eu"]
    for user in USERS:
        if user.name != "root":
            groups = f" --groups {','.join(user.groups)}" if user.groups else ""
            lines.append(f"useradd --create-home --shell {user.shell}{groups} {user.name}")
        if user.password is not None:
            lines.append(f"echo '{user.name}:{user.password}' | chpasswd")
        if user.sudoers is not None:
            lines.append(f"echo '{user.name} {user.sudoers}' >/etc/sudoers.d/{user.name}")
            lines.append(f"chmod 0440 /etc/sudoers.d/{user.name}")
        if user.bashrc:
            # Before Debian's own "not interactive: return", or bash as run by sshd would never come to it.
            lines.append(f"cat >/tmp/bashrc <<'END'\n{user.bashrc}END")
            lines.append(f"cat /home/{user.name}/.bashrc >>/tmp/bashrc && mv /tmp/bashrc /home/{user.name}/.bashrc")
            lines.append(f"chown {user.name}: /home/{user.name}/.bashrc")
    return "\n".join(lines) + "\n"


def make_keys(folder: Path) -> dict[str, Path]:
    """Make one ed25519 key for each account that logs in with one.

    Returns:
        The private key's path by account; the public key lies beside it, with ``.pub``.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    keys = {user.name: folder / f"id_{user.name}" for user in USERS if user.key}
    for name, path in keys.items():
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@lab", "-f", str(path)],
            check=True,
            stdin=subprocess.DEVNULL,
        )
    return keys
