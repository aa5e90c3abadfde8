"""One systemd-nspawn container: starting it, knowing when it is up, running commands in it, ending it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lab import cgroup

POLL = 0.02
REBOOTED = 133
"""systemd-nspawn's exit status where the container asked for a reboot."""
NSPAWN = (
    "--quiet",
    "--boot",
    "--register=no",  # there may be no machined outside
    "--keep-unit",  # nor a systemd to ask for a scope: ``cgroup`` makes the groups
    "--notify-ready=yes",
    "--resolv-conf=off",
    "--timezone=off",
    "--link-journal=no",
    "--console=read-only",
)
ENTER_GROUPS = 'while test "$1" != --; do echo $$ >"$1"; shift; done; shift; exec "$@"'
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LC_ALL": "C.UTF-8",
}
DOCKER_OPTIONS = ("--capability=all", "--system-call-filter=@keyring bpf")
"""What dockerd needs beyond the usual; cgroup v2, which it needs as well, every droplet has."""


class Container:
    """A booted root. It ends when ``kill`` or ``power_off`` is called, or when it powers itself off."""

    def __init__(self, name: str, root: Path, *, bridge: str, log: Path, options: Sequence[str] = ()) -> None:
        self.name = name
        self._log = log
        self._command = ["systemd-nspawn", *NSPAWN, f"--machine={name}", f"--directory={root}"]
        self._command += [f"--network-bridge={bridge}", *options]
        self._lock = threading.Lock()
        self._ending = False
        self.boots = 0
        self._start()
        threading.Thread(target=self._watch, name=f"lab droplet {name}", daemon=True).start()

    def _start(self) -> None:
        Path("/run/systemd/nspawn").mkdir(parents=True, exist_ok=True)
        groups = cgroup.make(self.name)
        self._ready = False
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = self._log.with_name("notify")
        path.unlink(missing_ok=True)
        self._notify.bind(str(path))
        threading.Thread(
            target=self._listen, args=(self._notify,), name=f"lab droplet {self.name} notify", daemon=True
        ).start()
        environment = {**os.environ, "NOTIFY_SOCKET": str(path), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                ["sh", "-c", ENTER_GROUPS, "sh", *map(str, groups), "--", *self._command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # Ctrl-C in the terminal ends the tests, which then end this
            )
        self.boots += 1

    def _watch(self) -> None:
        """Start it again whenever it reboots itself."""
        while True:
            status = self._process.wait()
            with self._lock:
                self._notify.shutdown(socket.SHUT_RDWR)  # ends its listener
                if self._ending or status != REBOOTED:
                    return
                self._start()

    @property
    def pid(self) -> int:
        """The process id of systemd-nspawn itself."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it still runs, or is about to come back."""
        return self._process.poll() is None or (self._process.returncode == REBOOTED and not self._ending)

    @property
    def leader(self) -> int:
        """The process id, as seen from outside, of the container's own process 1.

        Raises:
            RuntimeError: It does not run.
        """
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        try:
            for child in children.read_text().split():
                status = Path(f"/proc/{child}/status").read_text()
                if "\nNSpid:\t" in status and status.split("\nNSpid:\t")[1].split("\n")[0].split()[-1] == "1":
                    return int(child)
        except FileNotFoundError:
            pass
        raise RuntimeError(f"lab droplet {self.name} does not run; its console: {self._log}")

    def wait_ready(self, timeout: float, boots: int = 1) -> None:
        """Wait until it began at least ``boots`` boots, and its systemd says that the last one is through.

        Raises:
            RuntimeError: It ended instead, or took too long; the message ends with its console's last lines.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if not self.running:
                raise RuntimeError(f"lab droplet {self.name} ended instead of booting:\n{self.console()}")
            with self._lock:
                if self.boots >= boots and self._ready:
                    return
            time.sleep(POLL)
        raise RuntimeError(f"lab droplet {self.name} is not up after {timeout} s:\n{self.console()}")

    def _listen(self, notify: socket.socket) -> None:
        """Read all that systemd inside has to say, as long as it runs.

        Where nobody reads, the eleventh message (net.unix.max_dgram_qlen) blocks systemd-nspawn and, behind it, the
        droplet's process 1: every reload of units is a message or two.
        """
        with notify:
            while message := notify.recv(4096):
                if notify is self._notify and b"READY=1" in message.split(b"\n"):
                    self._ready = True

    def console(self) -> str:
        """The last lines of its console."""
        return self._log.read_bytes()[-3000:].decode(errors="replace")

    def run(self, argv: Sequence[str], *, input: bytes = b"", timeout: float) -> subprocess.CompletedProcess[bytes]:  # noqa: A002
        """Run a command inside as root, without a login, and wait for its end.

        Raises:
            TimeoutError: It took longer; it was killed with its process group.
            RuntimeError: The container does not run.
        """
        command = ["nsenter", f"--target={self.leader}", "--all", "--wdns=/", "--", *argv]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            start_new_session=True,
        ) as process:
            try:
                stdout, stderr = process.communicate(input, timeout)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise TimeoutError(
                        f"{argv[0]} on lab droplet {self.name} took longer than {timeout} s"
                    ) from None
                raise
        return subprocess.CompletedProcess(list(argv), process.returncode, stdout, stderr)

    def power_off(self, timeout: float) -> None:
        """Shut it down in order; killed where that takes too long."""
        if self.running:
            self._end(signal.SIGRTMIN + 4, timeout)  # systemd(1): poweroff.target

    def kill(self) -> None:
        """End it abruptly: all its processes are killed at once. Does nothing where it has ended."""
        if self.running:
            self._end(signal.SIGKILL, 5)
        cgroup.end(self.name)
        shutil.rmtree(f"/run/systemd/nspawn/propagate/{self.name}", ignore_errors=True)

    def _end(self, how: int, timeout: float) -> None:
        with self._lock:
            self._ending = True
        try:
            os.kill(self.leader, how)
            self._process.wait(timeout)
        except (RuntimeError, ProcessLookupError, subprocess.TimeoutExpired):
            cgroup.end(self.name)  # a container outlives its systemd-nspawn
            self._process.wait()
