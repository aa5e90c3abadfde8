"""How full a GPU's memory is, by the structure that tells the driver's own share apart."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from remote_scripts.gpu.nvml import Nvml
from remote_scripts.gpu.nvml_query import Figures, Query, Reasons

KEYS = ("memory_total", "memory_used", "memory_free", "memory_reserved")
SHARED = "this GPU has no memory of its own, it shares the host's"
OLD = "this driver's NVML (older than 510) counts the driver's own share as used"


def memory_query(nvml: Nvml, handle: Any, shares: Callable[[], None] | None = None) -> Query:
    """The memory of a GPU or MIG device, bytes.

    Args:
        nvml: the library.
        handle: the GPU or MIG device.
        shares: called where the GPU turns out to have no memory of its own (GB10 answers Not Supported, or 0).
    """
    second = nvml.bindings.c_nvmlMemory_v2_t()
    second.version = nvml.bindings.nvmlMemory_v2
    first = nvml.bindings.c_nvmlMemory_t()

    def unified(reasons: Reasons) -> None:
        reasons.update(dict.fromkeys(KEYS, SHARED))
        if shares is not None:
            shares()

    def store_second(figures: Figures, reasons: Reasons) -> None:
        total, used, free, reserved = second.total, second.used, second.free, second.reserved
        if not total:
            unified(reasons)
            return
        figures["memory_total"], figures["memory_used"], figures["memory_free"] = total, used, free
        # nvml.h says that `used` holds the reserved part; every figure seen says that the three add up.
        off = used + free + reserved - total
        if "memory_reserved" in reasons:
            for key in KEYS:
                reasons.pop(key, None)
        if -total <= off * 100 <= total:
            figures["memory_reserved"] = reserved
        else:
            reasons["memory_reserved"] = (
                f"used, free and reserved add up to {100 + 100 * off / total:.0f} % of the total"
            )

    def store_first(figures: Figures, reasons: Reasons) -> None:
        if not first.total:
            unified(reasons)
            return
        figures["memory_total"], figures["memory_used"], figures["memory_free"] = (
            first.total,
            first.used,
            first.free,
        )
        for key in KEYS[:3]:
            reasons.pop(key, None)
        reasons["memory_reserved"] = OLD

    def store_nothing(_: Figures, reasons: Reasons) -> None:
        unified(reasons)

    last = Query(KEYS, _succeed if shares is not None else None, (), store_nothing)
    older = Query(KEYS, nvml.function("nvmlDeviceGetMemoryInfo"), (handle, ctypes.byref(first)), store_first, last)
    newer = nvml.function("nvmlDeviceGetMemoryInfo_v2")
    return Query(KEYS, newer, (handle, ctypes.byref(second)), store_second, older)


def _succeed() -> int:
    """The last resort asks NVML nothing: both calls were refused for good."""
    return 0
