"""Where this machine's own apt gets its packages: the lab's roots come from there too.

No address of a package source stands in this code base; it is asked for when a root is built.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AptSource:
    """What debootstrap needs to fetch as apt does.

    Attributes:
        mirror: The address of the archive.
        debootstrap_options: Options for debootstrap, such as the keyring.
        environment: Proxy variables, where apt uses a proxy.
    """

    mirror: str
    debootstrap_options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def apt_source() -> AptSource:
    """Ask apt for its archive of this release's main component.

    Raises:
        RuntimeError: apt has no such source.
    """
    codename = _os_release().get("VERSION_CODENAME", "")
    targets = _output("apt-get", "indextargets", "--format", "$(CREATED_BY)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)")
    for line in targets.splitlines():
        created_by, release, component, uri = line.split("|", 3)
        if (created_by, release, component) == ("Packages", codename, "main"):
            return AptSource(uri, _keyring(), _proxies())
    raise RuntimeError(f"apt on this machine has no source for {codename} main: the lab's roots cannot be fetched")


def _keyring() -> tuple[str, ...]:
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    return (f"--keyring={keyring}",) if keyring.exists() else ()


def _proxies() -> dict[str, str]:
    settings = _output("apt-config", "dump", "--format", "%f=%v%n", "Acquire::http::Proxy", "Acquire::https::Proxy")
    found = dict(re.findall(r"^Acquire::(https?)::Proxy=(\S+)$", settings, re.MULTILINE))
    return {f"{scheme}_proxy": address for scheme, address in found.items() if address != "DIRECT"}


def _os_release() -> dict[str, str]:
    lines = Path("/etc/os-release").read_text().splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line)
    return {key: value.strip('"') for key, value in pairs}


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
