"""The folder that the practice droplet's scripts take for /: what stands in it, and how it is written."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import uuid
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from console.demo import gpu, nvml_library

HOSTNAME = "practice-droplet"
NVML = "/usr/lib/droplet-console/nvml_library.py"
"""Where ``remote_scripts.gpu.nvml`` looks for a stand-in (its ``STAND_IN``)."""
SYSTEMCTL = "/run/droplet-console-demo/systemctl"
"""What the stand-in for systemctl prints."""
_TOOLS = ("sh", "env", "cat", "dd", "mkfifo", "rm", "sleep", "setsid", "uname", "stdbuf")
"""Real tools that starting and ending a command needs; nothing that could change the machine's settings."""
_SYSTEMCTL = """#!/bin/sh
# Stands in for systemctl on the practice droplet, which has no systemd.
case "$1" in
 show) cat {file} ;;
 is-system-running) echo running ;;
 list-units) : ;;
 *) echo "practice droplet: no systemctl $1 here" >&2; exit 1 ;;
esac
"""


class Root:
    """The root folder.

    Attributes:
        folder: Where it lies.
        bin: The only folder in which scripts look for tools.
        unit: The systemd unit that Triton is said to run in.
    """

    def __init__(self, folder: Path, unit: str = "triton-standin.service") -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.unit = unit

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file whole: a reader sees the old text or the new."""
        target = self.folder / path.lstrip("/")
        try:
            self._replace(target, text, mode)
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._replace(target, text, mode)

    def _replace(self, target: Path, text: str, mode: int) -> None:
        fresh = target.with_name(f".{target.name}.new")
        fresh.write_text(text, encoding="utf-8")
        if mode != 0o644:
            fresh.chmod(mode)
        fresh.replace(target)

    def remove(self, path: str) -> None:
        """Remove a folder with what is in it."""
        shutil.rmtree(self.folder / path.lstrip("/"), ignore_errors=True)

    def build(self) -> None:
        """Write all that does not change."""
        for path, text in _STATIC.items():
            self.write(path, text)
        self.write(f"/etc/systemd/system/{self.unit}", _UNIT)
        self.write("/proc/sys/kernel/random/boot_id", f"{uuid.uuid4()}\n")
        for path in ("/sys/block/vda/device", "/sys/class/net/eth0/device", "/var/lib", "/tmp", "/home"):  # noqa: S108
            (self.folder / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        self.write(NVML, files("console.demo").joinpath("nvml_library.py").read_text("utf-8"))
        self._put_tools()
        for kind in ("net", "pid"):
            self.write(f"/proc/self/ns/{kind}", "")

    def process(self, pid: int, arguments: Sequence[str], *, name: str, parent: int, started: float) -> None:
        """A process in /proc.

        Args:
            pid: Its id.
            arguments: Its command line.
            name: Of its command.
            parent: The parent's id.
            started: Seconds since boot.
        """
        zeros = " ".join("0" * 17)
        self.write(f"/proc/{pid}/stat", f"{pid} ({name}) S {parent} {zeros} {int(started * 100)} 0 0\n")
        self.write(f"/proc/{pid}/comm", f"{name[:15]}\n")
        self.write(f"/proc/{pid}/cmdline", "\0".join(arguments) + "\0")
        self.write(f"/proc/{pid}/cgroup", f"0::/system.slice/{self.unit}\n")
        for kind in ("net", "pid"):
            # The same file as that of /proc/self: it is in the same namespace.
            link = self.folder / f"proc/{pid}/ns/{kind}"
            link.parent.mkdir(exist_ok=True)
            if not link.exists():
                os.link(self.folder / f"proc/self/ns/{kind}", link)

    def _put_tools(self) -> None:
        self.bin.mkdir(parents=True, exist_ok=True)
        for name in _TOOLS:
            found = shutil.which(name, path="/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin")
            if found is not None:
                (self.bin / name).symlink_to(found)
        # Not a link: a virtual environment's Python finds its library by where it was called.
        self.write("/bin/python3", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', 0o755)
        file = shlex.quote(str(self.folder / SYSTEMCTL.lstrip("/")))
        self.write("/bin/systemctl", _SYSTEMCTL.format(file=file), 0o755)


_UNIT = """[Unit]
Description=NVIDIA Triton of the practice droplet
[Service]
ExecStart=/opt/practice/bin/tritonserver
Restart=always
"""
_STATIC = {
    "/etc/os-release": 'NAME="Practice droplet"\nPRETTY_NAME="Practice droplet of droplet-console (simulated)"\n'
    'ID=practice\nVERSION_ID="1"\n',
    "/etc/hostname": f"{HOSTNAME}\n",
    "/etc/resolv.conf": "# practice droplet: no name is ever looked up\nnameserver 127.0.0.53\n",
    "/proc/sys/kernel/hostname": f"{HOSTNAME}\n",
    "/proc/sys/kernel/osrelease": "6.8.0-simulated\n",
    "/proc/self/mounts": "/dev/vda1 / ext4 rw 0 0\n",
    "/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {gpu.DRIVER}  (simulated)\n",
    "/proc/net/route": "Iface\tDestination\tGateway\n",
    f"/{nvml_library.STATE}": "{}",
}
