"""What the lab needs of the machine it runs on, and getting it there."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab import root

REQUIRED_VARIABLE = "DROPLET_CONSOLE_LAB"
"""Set to "required", a lab that cannot be built is a failure instead of a reason to skip."""

TOOLS = {
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "mkfs.ext4": "e2fsprogs",
    "mount": "mount",
    "nsenter": "util-linux",
    "cc": "gcc",
}
"""Each tool the lab runs here, and Debian's package that has it. cc builds the stub of NVML."""

HEADERS = {"/usr/include/stdio.h": "libc6-dev"}
"""What cc needs, likewise."""


def is_required() -> bool:
    """Whether tests on the lab must run."""
    return os.environ.get(REQUIRED_VARIABLE) == "required"


def why_impossible() -> str | None:
    """Why the lab cannot be built on this machine at all, or None."""
    if sys.platform != "linux":
        return "the lab needs Linux: it boots its droplets with systemd-nspawn"
    if platform.machine() != "x86_64":
        return "the lab needs an x86-64 machine: there is no Triton for its tests on any other"
    if os.geteuid() != 0:
        return "the lab needs root: it boots its droplets with systemd-nspawn"
    if not Path("/etc/debian_version").exists() or shutil.which("apt-get") is None:
        return "the lab needs Debian: its droplets are made by debootstrap from the machine's own package source"
    return None


def why_not_ready() -> str | None:
    """Why tests on the lab cannot run now, or None."""
    reason = why_impossible()
    if reason is None and missing_packages():
        reason = f"the lab is not set up ({', '.join(missing_packages())} missing): run `make lab-setup`"
    if reason is None and not all(root.is_built(release, extras) for release, extras in root.ROOTS):
        reason = "the lab's roots are not built: run `make lab-setup`"
    return reason


def missing_packages() -> list[str]:
    """Debian's packages that this machine lacks."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    tools = {package for tool, package in TOOLS.items() if shutil.which(tool, path=path) is None}
    headers = {package for header, package in HEADERS.items() if not Path(header).exists()}
    return sorted(tools | headers)


def install(packages: list[str]) -> None:
    """Install packages with apt.

    Raises:
        subprocess.CalledProcessError: apt failed; it said why.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    options = ["-q", "-y", "-o", "DPkg::Lock::Timeout=300"]
    subprocess.run(["apt-get", *options, "update"], check=True, env=environment, stdin=subprocess.DEVNULL)
    command = ["apt-get", *options, "--no-install-recommends", "install", *packages]
    subprocess.run(command, check=True, env=environment, stdin=subprocess.DEVNULL)
