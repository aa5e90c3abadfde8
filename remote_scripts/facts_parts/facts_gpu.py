"""The GPUs on the bus and the driver for them, without NVML: it may be the very thing that is broken.

/proc/driver/nvidia is the kernel module's own account; a user-space library of another version cannot work with it
("Driver/library version mismatch").
"""

from __future__ import annotations

import re
from typing import Any

from remote_scripts.facts_parts.facts_part import NotThere, Part, complaint
from remote_scripts.files import cut

_NVIDIA = "0x10de"
_MODULE = re.compile(r"(?:Kernel Module(?: for \S+)?|Open Kernel Module for \S+)\s+(\d+(?:\.\d+)+)")
_LIBRARY = re.compile(r"libnvidia-ml\.so\.(\d+\.\d+(?:\.\d+)*)")
_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
)
_PATIENCE = 6.0


def read(part: Part) -> dict[str, Any]:
    """What is on the bus, the kernel module, the library, and what nvidia-smi says.

    ``bus``: PCI addresses of NVIDIA's display controllers; ``module_version``, ``library_version``;
    ``devices``: model, uuid, bus by the module; ``modules``: of nvidia and nouveau, those that are loaded;
    ``profiling_admin_only``: the module's own word on performance counters; ``nvidia_smi``: status and text.
    """
    found: dict[str, Any] = {"bus": _bus(part), "modules": _modules(part), "devices": _devices(part)}
    version = _MODULE.search(part.text_or("/proc/driver/nvidia/version", "", 4096))
    if version:
        found["module_version"] = version[1]
    libraries = [_LIBRARY.fullmatch(name) for folder in _LIBRARY_FOLDERS for name in part.names(folder, 1 << 16)]
    versions = sorted({match[1] for match in libraries if match})
    if versions:
        found["library_version"] = versions[-1]
    params = part.text_or("/proc/driver/nvidia/params", "")
    admin = re.search(r"^RmProfilingAdminOnly:\s*(\d)", params, re.MULTILINE)
    if admin:
        found["profiling_admin_only"] = admin[1] == "1"
    if not found["bus"] and not found["devices"] and part.call.tool("nvidia-smi") is None:
        return found
    try:
        # Without persistence the driver is set up and torn down for this: seconds a GPU.
        done = part.tool(["nvidia-smi", "-L"], _PATIENCE, 1 << 14)
        text = done.text if done.ok else complaint(done)
        found["nvidia_smi"] = {"status": done.status, "text": text[: 1 << 12].strip()}
    except NotThere as error:
        part.miss("/nvidia_smi", str(error))
    return found


def _bus(part: Part) -> list[dict[str, str]]:
    """NVIDIA's display and 3D controllers (PCI class 0x03), whether or not a driver runs them."""
    found = []
    for address in part.names("/sys/bus/pci/devices"):
        folder = f"/sys/bus/pci/devices/{address}"
        if part.text_or(f"{folder}/vendor", "", 64).strip() != _NVIDIA:
            continue
        if part.text_or(f"{folder}/class", "", 64).startswith("0x03"):
            found.append({"address": cut(address), "device": part.text_or(f"{folder}/device", "", 64).strip()})
    return found[:64]


def _modules(part: Part) -> list[str]:
    loaded = {line.split(" ", 1)[0] for line in part.text_or("/proc/modules", "", 1 << 20).splitlines()}
    return [name for name in ("nvidia", "nvidia_uvm", "nouveau") if name in loaded]


def _devices(part: Part) -> list[dict[str, str]]:
    found = []
    for bus in part.names("/proc/driver/nvidia/gpus", 64):
        lines = part.text_or(f"/proc/driver/nvidia/gpus/{bus}/information", "", 1 << 14).splitlines()
        values = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        found.append(
            {
                "bus": cut(bus),
                "model": cut(values.get("Model", "")),
                "uuid": cut(values.get("GPU UUID", "")),
                "firmware": cut(values.get("GPU Firmware", "")),
            }
        )
    return found
