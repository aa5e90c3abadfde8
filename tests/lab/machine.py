"""A lab droplet: a real Debian with its own systemd, sshd, journal and firewall, booted in seconds.

    with Machine("bookworm") as machine:
        machine.run(["systemctl", "is-active", "ssh"])

It is reached like any droplet: ``ssh -F machine.ssh_config NAME``, as root or as any account of ``users``.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.lab import root as roots
from tests.lab import ssh_files
from tests.lab.disk import ImageDisk, OverlayDisk
from tests.lab.nspawn import DOCKER_OPTIONS, POLL, Container
from tests.lab.prepare import Identity, prepare, write_command, write_into
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
        disk: bool = False,
        sshd: Sequence[str] = (),
        binds: Mapping[Path, str] | None = None,
    ) -> None:
        """Prepare a droplet without booting it.

        Args:
            release: Which Debian.
            docker: With Docker in it.
            resolved: Whether systemd-resolved resolves names; otherwise a plain /etc/resolv.conf does.
            disk: With an ext4 of its own, so that ``power_cut`` can be called. Takes a second longer.
            sshd: Lines for sshd's configuration that win over the lab's, such as "MaxStartups 2".
            binds: Folders of this machine to show inside, read-only: where, by the folder here.
        """
        run = run_folder()
        self.release = release
        self.name = f"lab-{secrets.token_hex(3)}"
        self.address, self.address6 = run.network.take_addresses()
        self.gateway = run.network.gateway
        self.ssh_port = 22
        self.folder = run.folder / self.name
        self.root = self.folder / "root"
        self._network = run.network
        self._keys = run.keys
        self._process = os.getpid()
        self._closed = False
        self._container: Container | None = None
        self._options = [f"--bind-ro={outside}:{inside}" for outside, inside in (binds or {}).items()]
        self._options += self._docker_options(own_folder=not disk) if docker else []
        layers = roots.build(release, ["docker"] if docker else [])
        self._disk: OverlayDisk | ImageDisk = (ImageDisk if disk else OverlayDisk)(layers, self.folder)
        atexit.register(self.close)
        self._disk.mount(self.root)
        identity = Identity(self.name, self.address, self.address6, self.gateway)
        prepare(self.root, identity, self._keys, resolved=resolved, sshd=sshd)
        self._disk.flush(self.root)  # what was set up before the first boot is no part of any power cut
        self._write_ssh_config()

    def _docker_options(self, *, own_folder: bool) -> list[str]:
        options = list(DOCKER_OPTIONS)
        if own_folder:  # Docker's overlays cannot lie on an overlay, which the root is
            (self.folder / "docker").mkdir(parents=True)
            options.append(f"--bind={self.folder / 'docker'}:/var/lib/docker")
        return options

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
        self._container = Container(
            self.name, self.root, bridge=self._network.bridge, log=self.folder / "console", options=self._options
        )
        self.wait_booted(timeout)

    @property
    def boots(self) -> int:
        """How many boots it began since ``boot``: more than one where it rebooted itself."""
        return self._up.boots

    def wait_booted(self, timeout: float = BOOT_TIMEOUT, *, boots: int = 1) -> None:
        """Wait until it began at least ``boots`` boots, the last one is through, and sshd answers on its address.

        Raises:
            RuntimeError: It does not come up; the message ends with its console's last lines.
        """
        end = time.monotonic() + timeout
        container = self._up
        container.wait_ready(timeout, boots)
        while not self._reachable():
            if time.monotonic() > end:
                raise RuntimeError(f"lab droplet {self.name}: no sshd on {self.address}:\n{container.console()}")
            time.sleep(POLL)

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

    def power_cut(self, *, boot: bool = True, timeout: float = BOOT_TIMEOUT) -> None:
        """Cut its power, this very moment, and boot it again from what its disk had by then.

        What a process wrote and did not fsync may be lost; what it did fsync is there.

        Args:
            boot: False to leave it off, with ``root`` showing what its disk had.
            timeout: Seconds for the boot.

        Raises:
            RuntimeError: It was made without ``disk=True``, or does not come up.
        """
        if not isinstance(self._disk, ImageDisk):
            raise RuntimeError(f"lab droplet {self.name} was made without disk=True: its power cannot be cut")
        self._disk.stop(self.root)
        self._up.kill()
        self._disk.keep_what_the_device_has(self.root)
        self._disk.mount(self.root)
        if boot:
            self.boot(timeout)

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
        data = content.encode() if isinstance(content, str) else content
        if self.running:
            self.run(write_command(path, mode, owner), data)
        else:
            write_into(self.root, path, data, mode, owner)

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
    def fingerprints(self) -> dict[str, str]:
        """The SHA256 fingerprints of its host keys ("SHA256:..."), by the kind of key ("ssh-ed25519")."""
        return ssh_files.fingerprints(self.root / "etc/ssh")

    @property
    def keys(self) -> dict[str, Path]:
        """The private keys of all accounts that have one."""
        return dict(self._keys)

    @property
    def ssh_config(self) -> Path:
        """The path of the OpenSSH configuration."""
        return self.folder / "ssh_config"

    def ssh_config_at(self, address: str, port: int) -> Path:
        """Write an OpenSSH configuration that reaches it at another address, through a proxy say."""
        path = self.folder / f"ssh_config-{address}-{port}"
        known_hosts = self.known_hosts_for(address, port)
        ssh_files.write_ssh_config(path, self.name, address, port, known_hosts, self._keys)
        return path

    def rebuild_host_keys(self, *, trust: bool = False) -> None:
        """Give it new host keys, as a rebuilt droplet has.

        Args:
            trust: Whether ``ssh_config`` trusts the new ones; otherwise it goes on naming the old.
        """
        ssh_files.make_host_keys(self.root / "etc/ssh")
        if self.running:
            self.run(["systemctl", "restart", "ssh.service"])
        if trust:
            self._write_ssh_config()

    def _write_ssh_config(self) -> None:
        ssh_files.write_ssh_config(
            self.ssh_config, self.name, self.address, self.ssh_port, self.known_hosts, self._keys
        )

    def close(self) -> None:
        """End it and remove everything of it. Calling it again does nothing."""
        atexit.unregister(self.close)
        if self._process != os.getpid() or self._closed:
            return  # a forked copy of whoever made it is not to end it
        self._closed = True
        if self._container is not None:
            self._container.kill()
        self._disk.unmount(self.root)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._network.give_back(self.address)

    def __enter__(self) -> Machine:
        if not self.running:
            self.boot()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
