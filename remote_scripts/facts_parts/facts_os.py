"""The operating system, the kernel, the machine, and this Python."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from remote_scripts.facts_parts.facts_part import NotThere, Part, assignments
from remote_scripts.files import cut

_OS_KEYS = ("ID", "ID_LIKE", "VERSION_ID", "VERSION_CODENAME", "PRETTY_NAME")
_DMI = "/sys/class/dmi/id"


def read_os(part: Part) -> dict[str, Any]:
    """From os-release(5): ``id``, ``id_like``, ``version_id``, ``version_codename``, ``pretty_name``."""
    text = part.text_or("/etc/os-release", "") or part.text("/usr/lib/os-release")
    found = assignments(text)
    return {key.lower(): found[key] for key in _OS_KEYS if key in found}


def read_kernel(part: Part) -> dict[str, Any]:
    """``release``, ``machine``, and ``reboot_required`` with the packages that want it (Debian and Ubuntu)."""
    release = part.text("/proc/sys/kernel/osrelease").strip()
    found: dict[str, Any] = {"release": cut(release), "machine": os.uname().machine}
    found["reboot_required"] = part.exists("/run/reboot-required") or part.exists("/var/run/reboot-required")
    if found["reboot_required"]:
        names = part.text_or("/run/reboot-required.pkgs", "").split()
        found["reboot_packages"] = [cut(name) for name in sorted(set(names))[:64]]
    return found


def read_machine(part: Part) -> dict[str, Any]:
    """From the firmware (DMI): ``vendor`` and ``product``; on DigitalOcean ``serial`` is the droplet's id."""
    found: dict[str, Any] = {}
    for key, file in (("vendor", "sys_vendor"), ("product", "product_name"), ("serial", "product_serial")):
        text = part.text_or(f"{_DMI}/{file}", "", 4096).strip()
        if text:
            found[key] = cut(text)
    if not found:
        raise NotThere("the firmware says nothing about the machine")
    return found


def read_python(part: Part) -> dict[str, Any]:
    """The Python that runs this: ``version`` and ``executable``."""
    return {"version": platform.python_version(), "executable": cut(sys.executable)}
