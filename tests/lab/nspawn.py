"""One systemd-nspawn container: starting it, knowing when it is up, running commands in it, ending it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

POLL = 0.02
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
        self._notify_path = log.with_name("notify")
        self._notify_path.unlink(missing_ok=True)
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._notify.bind(str(self._notify_path))
        Path("/run/systemd/nspawn").mkdir(parents=True, exist_ok=True)
        command = ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--notify-ready=yes"]
        command += [f"--machine={name}", f"--directory={root}", f"--network-bridge={bridge}"]
        command += ["--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=read-only", *options]
        environment = {
            **os.environ,
            "NOTIFY_SOCKET": str(self._notify_path),
            "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1",
        }
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # Ctrl-C in the terminal ends the tests, which then end this
            )

    @property
    def pid(self) -> int:
        """The process id of systemd-nspawn itself."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

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

    def wait_ready(self, timeout: float) -> None:
        """Wait until its systemd says that the boot is through.

        Raises:
            RuntimeError: It ended instead, or took too long; the message ends with its console's last lines.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if not self.running:
                raise RuntimeError(f"lab droplet {self.name} ended while booting:\n{self.console()}")
            if self._was_notified():
                return
            time.sleep(POLL)
        raise RuntimeError(f"lab droplet {self.name} is not up after {timeout} s:\n{self.console()}")

    def _was_notified(self) -> bool:
        try:
            return b"READY=1" in self._notify.recv(4096).split(b"\n")
        except BlockingIOError:
            return False

    def console(self) -> str:
        """The last lines of its console."""
        return self._log.read_bytes()[-3000:].decode(errors="replace")

    def run(self, argv: Sequence[str], *, input: bytes = b"", timeout: float) -> subprocess.CompletedProcess[bytes]:  # noqa: A002
        """Run a command inside as root, without a login, and wait for its end.

        Raises:
            TimeoutError: It took longer; it was killed with its process group.
            RuntimeError: The container does not run.
        """
        command = ["nsenter", f"--target={self.leader}", "--all", "--wd=/", "--", *argv]
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
            os.kill(self.leader, signal.SIGRTMIN + 4)  # systemd(1): poweroff.target
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
        self._clean()

    def kill(self) -> None:
        """End it abruptly: all its processes are killed at once. Does nothing where it has ended."""
        if self.running:
            try:
                os.kill(self.leader, signal.SIGKILL)
                self._process.wait(5)
            except (RuntimeError, ProcessLookupError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait()
        self._clean()

    def _clean(self) -> None:
        self._notify.close()
        self._notify_path.unlink(missing_ok=True)
