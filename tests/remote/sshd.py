"""A real sshd on loopback with a configuration, keys and users of its own.

It runs in a private mount namespace, so that its users and PAM rules are files of the test and nobody else's.
Needs root, Linux and OpenSSH's server.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from console.remote.target import Target

SSHD = "/usr/sbin/sshd"
USER = "ops"
PASSWORD = "correct horse"
PASSPHRASE = "battery staple"

PAM = """\
auth required pam_unix.so
account required pam_nologin.so
account required pam_permit.so
session required pam_permit.so
"""


def missing() -> str | None:
    """Why such an sshd cannot be had here, if so."""
    if os.name != "posix" or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "needs root"
    absent = [tool for tool in (SSHD, "unshare", "ssh-keygen", "openssl") if shutil.which(tool) is None]
    return f"needs {', '.join(absent)}" if absent else None


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
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = port or free_port()
        self.listen = listen
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
        etc = self.folder / "etc"
        etc.mkdir(exist_ok=True)
        for name in ("passwd", "shadow", "group"):
            shutil.copy(f"/etc/{name}", etc / name)
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        with (etc / "passwd").open("a") as file:
            file.write(f"{USER}:x:4242:4242::{home}:/bin/sh\n")
        hashed = subprocess.run(["openssl", "passwd", "-6", PASSWORD], capture_output=True, text=True, check=True)
        with (etc / "shadow").open("a") as file:
            file.write(f"{USER}:{hashed.stdout.strip()}:19000:0:99999:7:::\n")
        (etc / "pam").write_text(PAM)
        binds = (("passwd", "/etc/passwd"), ("shadow", "/etc/shadow"), ("pam", "/etc/pam.d/sshd"))
        script = "mount --make-rprivate /; mkdir -p /run/sshd; "
        script += "".join(f"mount --bind '{etc / name}' {place}; " for name, place in binds)
        script += f"exec {SSHD} -D -e -f '{self.folder / 'sshd_config'}'"
        before = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["unshare", "-m", "sh", "-ec", script], stdin=subprocess.DEVNULL, stdout=log, stderr=log
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
