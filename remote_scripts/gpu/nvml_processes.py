"""Which processes hold memory on a GPU, by NVML: process ids of the host, and bytes."""

from __future__ import annotations

import ctypes
from typing import Any

from remote_scripts.gpu.nvml import FOR_GOOD, FUNCTION_NOT_FOUND, INSUFFICIENT_SIZE, Nvml

NOT_AVAILABLE = (1 << 64) - 1
"""NVML_VALUE_NOT_AVAILABLE: the driver does not say how much."""
MAX_PID = 1 << 22
"""Linux's own limit (PID_MAX_LIMIT)."""
MAX_PROCESSES = 1024
KINDS = ("Compute", "Graphics", "MPSCompute")

Held = list[tuple[int, "int | None"]]
"""Process id, bytes; None where the driver does not say."""


class _ProcessV1(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong))


class _ProcessV2(ctypes.Structure):
    _fields_ = (*_ProcessV1._fields_, ("gpuInstanceId", ctypes.c_uint), ("computeInstanceId", ctypes.c_uint))


class _ProcessV3Early(ctypes.Structure):
    """The v3 of the first 535 drivers: one member more than before and after."""

    _fields_ = (*_ProcessV2._fields_, ("usedGpuCcProtectedMemory", ctypes.c_ulonglong))


class ProcessLists:
    """Asks for the lists by the newest function that the driver answers.

    _v3 came with 510, went with 535.43 and came back with 535.104.05 (nvitop issue 88); a structure given to the
    wrong one returns rubbish from the second process on (go-nvml issue 21).
    """

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        # How nvitop tells the two layouts of v3 apart (its libnvml.py).
        early = (
            nvml.function("nvmlDeviceGetConfComputeMemSizeInfo") is not None
            and nvml.function("nvmlDeviceGetRunningProcessDetailList") is None
        )
        layouts = {"_v3": _ProcessV3Early if early else _ProcessV2, "_v2": _ProcessV2, "": _ProcessV1}
        self._ladders: dict[str, list[tuple[Any, Any]]] = {}
        for kind in KINDS:
            self._ladders[kind] = [
                (function, layout)
                for suffix, layout in layouts.items()
                if (function := nvml.function(f"nvmlDeviceGet{kind}RunningProcesses{suffix}")) is not None
            ]

    def read(self, device: Any) -> Held | str:
        """The processes on a GPU or a MIG device, by process id; or why the list is not to be had."""
        held: dict[int, int | None] = {}
        refusal = self._nvml.reason(FUNCTION_NOT_FOUND)
        answered = False
        for kind in KINDS:
            found = self._read_kind(kind, device)
            if isinstance(found, str):
                refusal = found
                continue
            answered = True
            for pid, memory in found:
                # A process that computes and draws stands in both lists with the same sum.
                before = held.get(pid)
                held[pid] = memory if before is None else before if memory is None else max(before, memory)
        if not answered:
            return refusal
        if any(not 0 < pid <= MAX_PID for pid in held):
            return "this driver's process list has a layout of its own (535.54 is known for it): update the driver"
        return sorted(held.items())

    def _read_kind(self, kind: str, device: Any) -> Held | str:
        ladder = self._ladders[kind]
        code = FUNCTION_NOT_FOUND
        while ladder:
            function, layout = ladder[0]
            code, found = _read_list(function, layout, device)
            if code == 0:
                return found
            if code not in FOR_GOOD or len(ladder) == 1:
                break
            # An older function may still be answered; this one will not be.
            del ladder[0]
        return self._nvml.reason(code)


def _read_list(function: Any, layout: Any, device: Any) -> tuple[int, Held]:
    count = ctypes.c_uint(0)
    code = function(device, ctypes.byref(count), None)
    if code != INSUFFICIENT_SIZE:
        return code, []
    # Room for those that start between the two calls.
    count.value = min(count.value * 2 + 5, MAX_PROCESSES)
    array = (layout * count.value)()
    code = function(device, ctypes.byref(count), array)
    if code:
        return code, []
    return 0, [
        (row.pid, None if row.usedGpuMemory == NOT_AVAILABLE else row.usedGpuMemory)
        for row in array[: min(count.value, len(array))]
    ]
