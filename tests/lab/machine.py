"""A lab droplet: a real Debian with its own systemd, sshd, journal and firewall, booted in seconds.

    with Machine("bookworm") as machine:
        machine.run(["systemctl", "is-active", "ssh"])

It is reached like any droplet: ``ssh -F machine.ssh_config NAME``, as root or as any account of ``users``.
"""

from __future__ import annotations

import atexit
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.lab import root as roots
from tests.lab import ssh_files
from tests.lab.nspawn import DOCKER_OPTIONS, POLL, Container
from tests.lab.overlay import mount_overlay, unmount
from tests.lab.run_folder import run_folder

BOOT_TIMEOUT = 60.0


class Machine:
    """One lab droplet. ``boot`` it (or enter it as a context manager), ``close`` it at the end.

    Attributes:
        name: Its host name, unique on this machine.
        release: "bookworm" or "trixie".
        address: Its IPv4 address; port 22 and every other is reached there from this machine and other droplets.
        address6: Its IPv6 address.
        gateway: This machine's address, as the droplet sees it.
        ssh_port: 22.
        root: Its live root as seen from outside: to look at; use ``write`` to change files.
        ssh_config: An OpenSSH configuration that names it, ``NAME`` for root and ``NAME-USER`` for the others.
    """

    def __init__(
        self,
        release: str = "bookworm",
        *,
        docker: bool = False,
        resolved: bool = True,
        sshd: Sequence[str] = (),
        binds: Mapping[Path, str] | None = None,
    ) -> None:
        """Prepare a droplet without booting it.

        Args:
            release: Which Debian.
            docker: With Docker in it.
            resolved: Whether systemd-resolved resolves names; otherwise a plain /etc/resolv.conf does.
            sshd: Lines for sshd's configuration that win over the lab's, such as "MaxStartups 2".
            binds: Folders of this machine to show inside, read-only: where, by the folder here.
        """
        run = run_folder()
        self.release = release
        self.name = f"lab-{secrets.token_hex(3)}"
        self.address, self.address6 = run.network.next_addresses()
        self.gateway = run.network.gateway
        self.ssh_port = 22
        self.folder = run.folder / self.name
        self.root = self.folder / "root"
        self._bridge = run.network.bridge
        self._keys = run.keys
        self._container: Container | None = None
        self._options = [f"--bind-ro={outside}:{inside}" for outside, inside in (binds or {}).items()]
        if docker:
            # An overlay cannot lie on an overlay, which the root is.
            (self.folder / "docker").mkdir(parents=True)
            self._options += [*DOCKER_OPTIONS, f"--bind={self.folder / 'docker'}:/var/lib/docker"]
        layers = roots.build(release, ["docker"] if docker else [])
        mount_overlay(self.root, layers, upper=self.folder / "upper", work=self.folder / "work")
        atexit.register(self.close)
        self._prepare(resolved, sshd)
        self.boots = 0

    def _prepare(self, resolved: bool, sshd: Sequence[str]) -> None:
        self.write("/etc/hostname", self.name + "\n")
        self.write("/etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {self.name}\n")
        self.write("/etc/machine-id", secrets.token_hex(16) + "\n", 0o444)
        self.write(
            "/etc/systemd/network/80-container-host0.network",
            f"[Match]\nName=host0\n\n[Network]\nAddress={self.address}/24\nGateway={self.gateway}\n"
            f"Address={self.address6}/64\nIPv6AcceptRA=no\nLLMNR=no\nMulticastDNS=no\n",
        )
        self.write("/etc/ssh/sshd_config.d/10-test.conf", "".join(line + "\n" for line in sshd))
        verb = "enable" if resolved else "disable"
        self._outside("systemctl", f"--root={self.root}", "--quiet", verb, "systemd-resolved.service")
        resolv_conf = self.root / "etc/resolv.conf"
        resolv_conf.unlink(missing_ok=True)
        if resolved:
            resolv_conf.symlink_to("../run/systemd/resolve/stub-resolv.conf")
        else:
            resolv_conf.write_text(f"nameserver {self.gateway}\n")
        for user, key in self._keys.items():
            home = "/root" if user == "root" else f"/home/{user}"
            self.write(f"{home}/.ssh/authorized_keys", key.with_suffix(".pub").read_text(), 0o600, owner=user)
        self.rebuild_host_keys(trust=True)

    @property
    def running(self) -> bool:
        """Whether it is up."""
        return self._container is not None and self._container.running

    def boot(self, timeout: float = BOOT_TIMEOUT) -> None:
        """Boot it, and wait until the boot is through and sshd answers on its address.

        Raises:
            RuntimeError: It does not come up; the message ends with its console's last lines.
        """
        if self.running:
            raise RuntimeError(f"lab droplet {self.name} is up already")
        end = time.monotonic() + timeout
        self._container = Container(
            self.name, self.root, bridge=self._bridge, log=self.folder / "console", options=self._options
        )
        self._container.wait_ready(timeout)
        while not self._reachable():
            if time.monotonic() > end:
                raise RuntimeError(
                    f"lab droplet {self.name}: no sshd on {self.address}:\n{self._container.console()}"
                )
            time.sleep(POLL)
        self.boots += 1

    def _reachable(self) -> bool:
        """Whether sshd listens and the address is there, without a connection, which sshd would hold against us."""
        network = Path(f"/proc/{self._up.leader}/net")
        listens = any(
            line.split()[1].endswith(f":{self.ssh_port:04X}") and line.split()[3] == "0A"
            for line in (network / "tcp").read_text().splitlines()[1:]
        )
        return listens and f"|-- {self.address}\n" in (network / "fib_trie").read_text()

    @property
    def _up(self) -> Container:
        if self._container is None:
            raise RuntimeError(f"lab droplet {self.name} is not booted")
        return self._container

    def shutdown(self, timeout: float = 30.0) -> None:
        """Shut it down in order. It can be booted again, with its disk as it was left."""
        self._up.power_off(timeout)

    def kill(self) -> None:
        """End all its processes at once. What it had written stays, flushed or not: no power cut."""
        self._up.kill()

    def run(
        self,
        argv: Sequence[str],
        input: bytes = b"",  # noqa: A002 - as subprocess calls it
        timeout: float = 30.0,
        *,
        check: bool = True,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command in it as root, past sshd, and wait for its end.

        Args:
            argv: The argument list.
            input: Its standard input.
            timeout: Seconds.
            check: Raise where it fails.

        Raises:
            TimeoutError: It took longer; it was killed.
            RuntimeError: It failed (with what it said), or the droplet is not up.
        """
        done = self._up.run(argv, input=input, timeout=timeout)
        if check and done.returncode:
            said = (done.stdout + done.stderr)[-4000:].decode(errors="replace")
            raise RuntimeError(f"{list(argv)} on lab droplet {self.name} ended with {done.returncode}:\n{said}")
        return done

    def write(self, path: str, content: str | bytes, mode: int = 0o644, *, owner: str = "root") -> None:
        """Write a file, and its folders, whether the droplet is up or not; links mean what they mean inside."""
        script = (
            'set -e; mkdir -p "$(dirname "$1")"; cat >"$1"; chmod "$2" "$1"; '
            'test "$3" = root || chown "$3:" "$1" "$(dirname "$1")"'
        )
        argv = ["sh", "-c", script, "sh", path, f"{mode:o}", owner]
        data = content.encode() if isinstance(content, str) else content
        if self.running:
            self.run(argv, data)
        else:
            self._outside("chroot", str(self.root), *argv, data=data)

    def key(self, user: str = "root") -> Path:
        """The private key that logs ``user`` in.

        Raises:
            KeyError: That account has none.
        """
        return self._keys[user]

    @property
    def known_hosts(self) -> str:
        """The lines of known_hosts that are true of it now."""
        return self.known_hosts_for(self.address, self.ssh_port)

    def known_hosts_for(self, host: str, port: int) -> str:
        """The lines of known_hosts for it as reached at another address, through a proxy say."""
        return ssh_files.known_hosts_lines(self.root / "etc/ssh", host, port)

    @property
    def ssh_config(self) -> Path:
        """The path of the OpenSSH configuration."""
        return self.folder / "ssh_config"

    def rebuild_host_keys(self, *, trust: bool = False) -> None:
        """Give it new host keys, as a rebuilt droplet has.

        Args:
            trust: Whether ``ssh_config`` trusts the new ones; otherwise it goes on naming the old.
        """
        ssh_files.make_host_keys(self.root / "etc/ssh")
        if self.running:
            self.run(["systemctl", "restart", "ssh.service"])
        if trust:
            ssh_files.write_ssh_config(
                self.ssh_config, self.name, self.address, self.ssh_port, self.known_hosts, self._keys
            )

    def _outside(self, *command: str, data: bytes = b"") -> None:
        subprocess.run(command, input=data, check=True, capture_output=True)

    def close(self) -> None:
        """End it and remove everything of it. Calling it again does nothing."""
        atexit.unregister(self.close)
        if self._container is not None:
            self._container.kill()
        unmount(self.root)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Machine:
        if not self.running:
            self.boot()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
