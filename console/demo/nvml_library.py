"""Stands in for NVML's library on the practice droplet: its functions, answered from a file.

This file is put into the practice droplet's root (``gpu.nvml.STAND_IN``) and runs there, in the script
that reads the GPUs: the standard library alone. The functions take what the C functions take, ctypes structures
by reference, and return NVML's codes. One that is not here is one that the driver does not have.
"""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

STATE = "run/droplet-console-demo/gpu.json"
"""Below the root; written several times a second by the demo's process."""
OK, INVALID_ARGUMENT, NOT_SUPPORTED, INSUFFICIENT_SIZE, UNKNOWN = 0, 2, 3, 7, 999
_GPM = {2: "sm", 5: "tensor", 10: "dram", 20: "tx", 21: "rx"}
_PERCENT = frozenset({2, 5, 10})


def library(_bindings: Any, root: str) -> Any:
    """What ``remote_scripts.gpu.nvml`` takes for the loaded library."""
    return Library(Path(root, STATE))


class Library:
    """NVML with one GPU. Method names are NVML's."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._state: dict[str, Any] = {}
        self._samples: dict[int, dict[str, float]] = {}
        self._buffers: list[Any] = []

    def nvmlInitWithFlags(self, _flags: int) -> int:  # noqa: N802
        """Read the GPU."""
        return self._read()

    def nvmlShutdown(self) -> int:  # noqa: N802
        """Nothing is held."""
        return OK

    def nvmlSystemGetDriverVersion(self, buffer: Any, size: int) -> int:  # noqa: N802
        """The version that it claims."""
        return _put_text(buffer, size, self._state["driver"])

    def nvmlSystemGetCudaDriverVersion_v2(self, place: Any) -> int:  # noqa: N802
        """Of CUDA, times 1000."""
        return _put(place, self._state["cuda"])

    def nvmlDeviceGetCount_v2(self, place: Any) -> int:  # noqa: N802
        """One."""
        return _put(place, 1)

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, _place: Any) -> int:  # noqa: N802
        """There is only one, and its handle means nothing."""
        return OK if index == 0 else INVALID_ARGUMENT

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, _place: Any) -> int:  # noqa: N802
        """Likewise."""
        return OK if uuid.decode() == self._state["uuid"] else INVALID_ARGUMENT

    def nvmlDeviceGetIndex(self, _device: Any, place: Any) -> int:  # noqa: N802
        """0."""
        return _put(place, 0)

    def nvmlDeviceGetUUID(self, _device: Any, buffer: Any, size: int) -> int:  # noqa: N802
        """Its own."""
        return _put_text(buffer, size, self._state["uuid"])

    def nvmlDeviceGetName(self, _device: Any, buffer: Any, size: int) -> int:  # noqa: N802
        """Says that it is simulated."""
        return _put_text(buffer, size, self._state["name"])

    def nvmlDeviceGetArchitecture(self, _device: Any, place: Any) -> int:  # noqa: N802
        """NVML_DEVICE_ARCH_*."""
        return _put(place, self._state["architecture"])

    def nvmlDeviceGetMemoryBusWidth(self, _device: Any, place: Any) -> int:  # noqa: N802
        """Bits."""
        return _put(place, self._state["bus_width"])

    def nvmlDeviceGetMaxClockInfo(self, _device: Any, _kind: int, place: Any) -> int:  # noqa: N802
        """MHz, of the memory: no other is asked for."""
        return _put(place, self._state["max_memory_clock"])

    def nvmlDeviceGetMemoryInfo_v2(self, _device: Any, place: Any) -> int:  # noqa: N802
        """Bytes. The first figure of a tick, so the state is read here."""
        code = self._read()
        if code == OK:
            memory = place._obj
            memory.total, memory.reserved, memory.free, memory.used = self._state["memory"]
        return code

    def nvmlDeviceGetTemperature(self, _device: Any, _sensor: int, place: Any) -> int:  # noqa: N802
        """Celsius."""
        return _put(place, self._state["temperature"])

    def nvmlDeviceGetPowerUsage(self, _device: Any, place: Any) -> int:  # noqa: N802
        """Milliwatts."""
        return _put(place, self._state["power_mw"])

    def nvmlDeviceGetEnforcedPowerLimit(self, _device: Any, place: Any) -> int:  # noqa: N802
        """Milliwatts."""
        return _put(place, self._state["power_limit_mw"])

    def nvmlDeviceGetClockInfo(self, _device: Any, kind: int, place: Any) -> int:  # noqa: N802
        """MHz of the SMs (1) or the memory (2)."""
        return _put(place, self._state["sm_clock" if kind == 1 else "memory_clock"])

    def nvmlDeviceGetCurrentClocksEventReasons(self, _device: Any, place: Any) -> int:  # noqa: N802
        """Bits."""
        return _put(place, self._state["reasons"])

    def nvmlDeviceGetUtilizationRates(self, _device: Any, place: Any) -> int:  # noqa: N802
        """Percent."""
        place._obj.gpu, place._obj.memory = self._state["utilization"], self._state["memory_busy"]
        return OK

    def nvmlDeviceGetTotalEccErrors(self, _device: Any, _kind: int, _counter: int, place: Any) -> int:  # noqa: N802
        """None."""
        return _put(place, 0)

    def nvmlDeviceGetRemappedRows(self, _device: Any, *places: Any) -> int:  # noqa: N802
        """None, nothing pending, no failure."""
        for place in places:
            _put(place, 0)
        return OK

    def nvmlDeviceGetFieldValues(self, _device: Any, count: int, values: Any) -> int:  # noqa: N802
        """The memory's temperature (82) and the energy in millijoules (83)."""
        for value in values[:count]:
            number = {82: self._state["memory_temperature"], 83: self._state["energy_mj"]}.get(value.fieldId)
            value.nvmlReturn = NOT_SUPPORTED if number is None else OK
            value.valueType = 3  # unsigned long long
            value.value.ullVal = number or 0
        return OK

    def nvmlDeviceGetComputeRunningProcesses_v3(self, _device: Any, count: Any, rows: Any) -> int:  # noqa: N802
        """Who holds its memory."""
        held = self._state["processes"]
        room, count._obj.value = count._obj.value, len(held)
        if room < len(held) or (rows is None and held):
            return INSUFFICIENT_SIZE
        for row, (pid, size) in zip(rows or (), held, strict=False):
            row.pid, row.usedGpuMemory = pid, size
        return OK

    def nvmlGpmQueryDeviceSupport(self, _device: Any, place: Any) -> int:  # noqa: N802
        """It has GPM, as Hopper does."""
        place._obj.isSupportedDevice = 1
        return OK

    def nvmlGpmSampleAlloc(self, place: Any) -> int:  # noqa: N802
        """A buffer whose address names the sample."""
        buffer = ctypes.create_string_buffer(8)
        self._buffers.append(buffer)
        address = ctypes.c_void_p(ctypes.addressof(buffer))
        ctypes.memmove(ctypes.addressof(place._obj), ctypes.byref(address), ctypes.sizeof(address))
        return OK

    def nvmlGpmSampleFree(self, sample: Any) -> int:  # noqa: N802
        """The few bytes stay until the end."""
        self._samples.pop(_address(sample), None)
        return OK

    def nvmlGpmSampleGet(self, _device: Any, sample: Any) -> int:  # noqa: N802
        """Keep the counters as they are now."""
        self._samples[_address(sample)] = dict(self._state["sums"])
        return OK

    def nvmlGpmMetricsGet(self, place: Any) -> int:  # noqa: N802
        """What happened between two samples."""
        request = place._obj
        first, last = (self._samples.get(_address(one)) for one in (request.sample1, request.sample2))
        if first is None or last is None:
            return INVALID_ARGUMENT
        seconds = last["time"] - first["time"]
        for row in request.metrics[: request.numMetrics]:
            key = _GPM.get(row.metricId)
            row.nvmlReturn = NOT_SUPPORTED if key is None else OK
            if key is not None:
                mean = (last[key] - first[key]) / seconds if seconds > 0 else float("nan")
                row.value = 100 * mean if row.metricId in _PERCENT else mean
        return OK

    def _read(self) -> int:
        try:
            self._state = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return UNKNOWN
        return OK


def _put(place: Any, value: int) -> int:
    place._obj.value = value
    return OK


def _put_text(buffer: Any, size: int, text: str) -> int:
    buffer.value = text.encode()[: size - 1]
    return OK


def _address(sample: Any) -> int:
    return ctypes.cast(sample, ctypes.c_void_p).value or 0
