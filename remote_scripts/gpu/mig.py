"""MIG devices: the slices of a GPU whose MIG mode is on."""

from __future__ import annotations

import ctypes
from time import monotonic
from typing import Any

from remote_scripts.files import name as as_key
from remote_scripts.gpu.gpm import KEYS as GPM_KEYS
from remote_scripts.gpu.gpm import OFF, Gpm
from remote_scripts.gpu.nvml import Nvml
from remote_scripts.gpu.nvml_memory import memory_query
from remote_scripts.gpu.nvml_query import Figures, Reasons

WHOLE = "a MIG device has none of its own: see its GPU"
OF_THE_GPU = (
    "temperature",
    "memory_temperature",
    "power_w",
    "power_limit_w",
    "energy_j",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "max_memory_clock_mhz",
    "bus_width_bits",
    "arch",
    "ecc_uncorrected",
    "remapped_pending",
    "remapped_failure",
)
NO_UTILISATION = "NVML gives no utilisation of MIG devices"
MOST = 16
"""MIG devices of one GPU that are asked for at most; 7 is what hardware has."""


class MigDevice:
    """One MIG device.

    Attributes:
        uuid: its key in the document.
        handle: NVML's.
        parent: its GPU's UUID.
        instance: the id of its GPU instance; None where NVML does not say.
        reasons: key of a figure to why it is not to be had.
    """

    __slots__ = ("_identity", "_memory", "_nvml", "gpm", "handle", "instance", "parent", "reasons", "uuid")

    def __init__(
        self, nvml: Nvml, handle: Any, uuid: str, parent: str, parent_handle: Any, index: int, *, gpm: bool
    ) -> None:
        self.uuid = uuid
        self.handle = handle
        self.parent = parent
        self._nvml = nvml
        self.reasons: Reasons = dict.fromkeys(OF_THE_GPU, WHOLE)
        self.reasons.update(utilization=NO_UTILISATION, memory_busy=NO_UTILISATION)
        self._identity: Figures = {"index": index, "mig": True, "parent": parent}
        name = nvml.text("nvmlDeviceGetName", handle)
        if isinstance(name, str):
            self._identity["name"] = name
        else:
            self.reasons["name"] = nvml.reason(name)
        self._memory = memory_query(nvml, handle)
        self.gpm: Gpm | None = None
        code, instance = nvml.number("nvmlDeviceGetGpuInstanceId", handle)
        self.instance = None if code else instance
        if not gpm:
            self.reasons.update(dict.fromkeys(GPM_KEYS, OFF))
        elif code:
            self.reasons.update(dict.fromkeys(GPM_KEYS, f"its GPU instance is not known: {nvml.reason(code)}"))
        else:
            self.gpm = Gpm(nvml, parent_handle, instance)

    @property
    def identity(self) -> Figures:
        """What stays true of it when it does not answer."""
        return dict(self._identity)

    def read(self) -> tuple[Figures, int]:
        """The figures of this tick, and NVML's code where it concerns the whole device (0 otherwise)."""
        figures = self.identity
        figures["state"] = "ok"
        code = self._memory.ask(self._nvml, figures, self.reasons)
        if not code and self.gpm is not None:
            code = self.gpm.read(monotonic(), figures, self.reasons)
        return figures, code

    def close(self) -> None:
        """Gives back what NVML allocated."""
        if self.gpm is not None:
            self.gpm.close()


def mig_mode(nvml: Nvml, handle: Any) -> bool:
    """Whether a GPU's MIG mode is on; False where it has none (L40S answers Not Supported)."""
    ask = nvml.function("nvmlDeviceGetMigMode")
    current, pending = ctypes.c_uint(), ctypes.c_uint()
    return ask is not None and ask(handle, ctypes.byref(current), ctypes.byref(pending)) == 0 and current.value == 1


def mig_handles(nvml: Nvml, handle: Any) -> list[tuple[int, str, Any]]:
    """Number, UUID and handle of each MIG device on a GPU, in NVML's order; numbers may have holes."""
    code, most = nvml.number("nvmlDeviceGetMaxMigDeviceCount", handle)
    get = nvml.function("nvmlDeviceGetMigDeviceHandleByIndex")
    found: list[tuple[int, str, Any]] = []
    if code or get is None:
        return found
    for index in range(min(most, MOST)):
        device = nvml.bindings.c_nvmlDevice_t()
        if get(handle, index, ctypes.byref(device)) == 0:
            uuid = nvml.text("nvmlDeviceGetUUID", device)
            if isinstance(uuid, str) and uuid:
                found.append((index, as_key(uuid), device))
    return found
