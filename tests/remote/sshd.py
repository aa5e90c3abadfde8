"""A real sshd on loopback with a configuration, keys and users of its own.

It runs from one of the lab's roots, in a private mount namespace: this machine needs no SSH server of its own, and
its users and PAM rules are files of the test. Needs the lab's roots (``pytest.mark.lab``).
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from console.remote.target import Target
from tests.lab import root as roots

USER = "ops"
PASSWORD = "correct horse"
PASSWORD_HASH = "$6$lab$cOGrT0BhQnVED40r80YnNluOjJV5Zwm.9uUeMYLcML4xg1EZXsJU0oxqyWsTZ1u9LbJfKuhjmEJ9q.X8PQLbZ1"
PASSPHRASE = "battery staple"

PAM = """\
auth required pam_unix.so
account required pam_nologin.so
account required pam_permit.so
session required pam_permit.so
"""


JAIL = """\
mount --make-rprivate /
mount --bind "$ROOT" "$JAIL"
mount -o remount,bind,ro "$JAIL"
mount --rbind /dev "$JAIL/dev"
mount --bind /proc "$JAIL/proc"
mount -t tmpfs tmpfs "$JAIL/run"
mount -t tmpfs -o mode=1777 tmpfs "$JAIL/tmp"
mkdir -p "$JAIL/run/sshd" "$JAIL$BASE"
mount --bind "$BASE" "$JAIL$BASE"
mount --bind "$ETC/passwd" "$JAIL/etc/passwd"
mount --bind "$ETC/shadow" "$JAIL/etc/shadow"
mount --bind "$ETC/pam" "$JAIL/etc/pam.d/sshd"
exec chroot "$JAIL" /usr/sbin/sshd -D -e -f "$CONFIG"
"""
"""Nothing of the root is written to. $BASE, below /tmp, holds the test's files and is seen at its own path."""


@dataclass(frozen=True, slots=True)
class Keys:
    """User keys in files, made once by ssh-keygen."""

    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def public(self, name: str) -> str:
        return (self.folder / f"{name}.pub").read_text().strip()


def keygen(path: Path, *arguments: str) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-N", "", "-f", str(path), *arguments], check=True, stdin=subprocess.DEVNULL
    )


def make_keys(folder: Path) -> Keys:
    folder.mkdir(parents=True, exist_ok=True)
    keygen(folder / "ed25519", "-t", "ed25519", "-C", "me@laptop")
    keygen(folder / "ecdsa", "-t", "ecdsa", "-b", "384")
    keygen(folder / "rsa", "-t", "rsa", "-b", "2048")
    keygen(folder / "other", "-t", "ed25519", "-C", "a stranger")
    keygen(folder / "pem", "-t", "rsa", "-b", "2048", "-m", "PEM")
    keygen(folder / "host_ed25519", "-t", "ed25519")
    keygen(folder / "host_rsa", "-t", "rsa", "-b", "2048")
    keygen(folder / "ca", "-t", "ed25519")
    for name, extra in (("locked", ("-t", "ed25519")), ("locked_pem", ("-t", "rsa", "-b", "2048", "-m", "PEM"))):
        subprocess.run(["ssh-keygen", "-q", "-N", PASSPHRASE, "-f", str(folder / name), *extra], check=True)
    return Keys(folder)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Sshd:
    """One server. ``accept`` lets keys in; ``log`` is what it said at LogLevel VERBOSE."""

    def __init__(
        self,
        folder: Path,
        keys: Keys,
        *options: str,
        host_keys: tuple[str, ...] = ("host_ed25519",),
        port: int | None = None,
        listen: str = "127.0.0.1",
        release: str = "bookworm",
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = port or free_port()
        self.listen = listen
        self._release = release
        self._keys = keys
        self._log = folder / "sshd.log"
        self._authorized = folder / "authorized_keys"
        self.accept("ed25519")
        lines = [
            f"Port {self.port}",
            f"ListenAddress {listen}",
            *(f"HostKey {keys.path(name)}" for name in host_keys),
            "AuthorizedKeysFile none",  # a file would be read as the user, who may not enter the test's folder
            f"AuthorizedKeysCommand /bin/cat {self._authorized}",
            "AuthorizedKeysCommandUser root",
            "StrictModes no",
            "PidFile none",
            "LogLevel VERBOSE",
            "PrintMotd no",
        ]
        # sshd takes the first value of an option.
        (folder / "sshd_config").write_text(
            "\n".join([*options, *lines, "UsePAM no", "PermitRootLogin yes"]) + "\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def accept(self, *names: str) -> None:
        self._authorized.write_text("".join(self._keys.public(name) + "\n" for name in names))

    def start(self) -> Sshd:
        root = roots.build(self._release)[0]
        etc, jail = self.folder / "etc", self.folder / "jail"
        etc.mkdir(exist_ok=True)
        jail.mkdir(exist_ok=True)
        user = f"{USER}:x:4242:4242::/tmp:/bin/sh\n"
        (etc / "passwd").write_text((root / "etc/passwd").read_text() + user)
        (etc / "shadow").write_text(
            (root / "etc/shadow").read_text() + f"{USER}:{PASSWORD_HASH}:19000:0:99999:7:::\n"
        )
        (etc / "pam").write_text(PAM)
        base = self._keys.folder.parent
        values = {"ROOT": root, "JAIL": jail, "BASE": base, "ETC": etc, "CONFIG": self.folder / "sshd_config"}
        environment = {**os.environ, **{name: str(value) for name, value in values.items()}}
        before = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["unshare", "-m", "sh", "-ec", JAIL],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        deadline = time.monotonic() + 20
        while "Server listening on" not in self.log[before:]:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"sshd did not start: {self.log}")
            time.sleep(0.02)
        return self

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def connections(self) -> int:
        """How often somebody connected."""
        return self.log.count("Connection from ")

    def stop(self) -> None:
        """End the listener; connections that stand go on, as with a restart of the service."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def target(self, **changes: object) -> Target:
        """As a resolved target: root by the key ``ed25519``, its host key in a known_hosts file."""
        known = self.folder / "known_hosts"
        if not known.exists():
            self.know("host_ed25519")
        values: dict[str, object] = {
            "name": "web1",
            "host": self.listen,
            "port": self.port,
            "user": "root",
            "identity_files": (self._keys.path("ed25519"),),
            "known_hosts_files": (str(known),),
            "connect_timeout": 10.0,
        }
        return Target(**(values | changes))  # type: ignore[arg-type]

    def know(self, *lines: str) -> None:
        """Write known_hosts: names of host keys, or whole lines."""
        text = ""
        for line in lines:
            words = self._keys.public(line).split()[:2] if " " not in line else []
            text += f"[{self.listen}]:{self.port} {' '.join(words)}\n" if words else line + "\n"
        (self.folder / "known_hosts").write_text(text)
