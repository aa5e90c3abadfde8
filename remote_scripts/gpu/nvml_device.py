"""What NVML tells of one GPU: static facts once, fast figures at every tick, slow ones at every tenth."""

from __future__ import annotations

import ctypes
from time import monotonic
from typing import Any

from remote_scripts.gpu.gpm import KEYS as GPM_KEYS
from remote_scripts.gpu.gpm import OFF, Gpm
from remote_scripts.gpu.mig import mig_mode
from remote_scripts.gpu.nvml import Nvml
from remote_scripts.gpu.nvml_memory import memory_query
from remote_scripts.gpu.nvml_query import (
    Fields,
    Figures,
    Query,
    Reasons,
    ask_all,
    uint_query,
    ulonglong_query,
)

SM_CLOCK, MEMORY_CLOCK = 1, 2
UNCORRECTED, VOLATILE = 1, 0
CORE_SENSOR = 0
FIELD_MEMORY_TEMPERATURE, FIELD_ENERGY = 82, 83
THROTTLE = (
    (0x2, "ApplicationsClocksSetting"),
    (0x4, "SwPowerCap"),
    (0x8, "HwSlowdown"),
    (0x10, "SyncBoost"),
    (0x20, "SwThermalSlowdown"),
    (0x40, "HwThermalSlowdown"),
    (0x80, "HwPowerBrakeSlowdown"),
    (0x100, "DisplayClockSetting"),
    (0x200, "BoardLimit"),
    (0x400, "Reliability"),
)
"""nvmlClocksEventReason*: 0x1, GpuIdle, is no throttling and is left out."""
MIG_ON = "NVML gives no utilisation of a GPU whose MIG mode is on"


class Device:
    """A whole GPU.

    Attributes:
        uuid: its key in the document.
        handle: NVML's.
        index: NVML's, which may change at a reboot.
        mig: whether its MIG mode is on.
        gpm: its GPM samples.
        reasons: key of a figure to why it is not to be had.
        shared_memory: True where it uses the host's memory, as GB10 does: NVML knows no memory of its own.
    """

    __slots__ = (
        "_fast",
        "_nvml",
        "_slow",
        "_slow_figures",
        "_static",
        "gpm",
        "handle",
        "index",
        "mig",
        "reasons",
        "shared_memory",
        "uuid",
    )

    def __init__(self, nvml: Nvml, handle: Any, uuid: str, index: int, *, gpm: bool) -> None:
        self.uuid = uuid
        self.handle = handle
        self.index = index
        self.reasons: Reasons = {}
        self.shared_memory = False
        self._nvml = nvml
        self._static: Figures = {}
        self._slow_figures: Figures = {}
        self.mig = mig_mode(nvml, handle)
        self.gpm = Gpm(nvml, handle) if gpm else None
        if self.gpm is None:
            self.reasons.update(dict.fromkeys(GPM_KEYS, OFF))
        self._read_static()
        self._fast = self._fast_queries()
        self._slow = self._slow_queries()

    @property
    def identity(self) -> Figures:
        """What stays true of it when it does not answer: index, name and the like."""
        return {"index": self.index, **self._static, **({"mig": True} if self.mig else {})}

    def read(self, *, slow: bool) -> tuple[Figures, int]:
        """The figures of this tick, and NVML's code where it concerns the whole GPU (0 otherwise)."""
        figures = self.identity
        figures["state"] = "ok"
        code = ask_all(self._nvml, self._fast, figures, self.reasons)
        if not code and self.gpm is not None:
            code = self.gpm.read(monotonic(), figures, self.reasons)
        if not code and slow:
            fresh: Figures = {}
            code = ask_all(self._nvml, self._slow, fresh, self.reasons)
            self._slow_figures = fresh
        figures.update(self._slow_figures)
        return figures, code

    def close(self) -> None:
        """Gives back what NVML allocated."""
        if self.gpm is not None:
            self.gpm.close()

    def _read_static(self) -> None:
        name = self._nvml.text("nvmlDeviceGetName", self.handle)
        if isinstance(name, str):
            self._static["name"] = name
        else:
            self.reasons["name"] = self._nvml.reason(name)
        for key, function, arguments in (
            ("arch", "nvmlDeviceGetArchitecture", ()),
            ("max_memory_clock_mhz", "nvmlDeviceGetMaxClockInfo", (MEMORY_CLOCK,)),
            ("bus_width_bits", "nvmlDeviceGetMemoryBusWidth", ()),
        ):
            code, value = self._nvml.number(function, self.handle, *arguments)
            if code:
                self.reasons[key] = self._nvml.reason(code)
            elif key == "arch":
                self._static[key] = architecture(self._nvml.bindings, value)
            else:
                self._static[key] = value

    def _fast_queries(self) -> list[Query]:
        nvml, handle = self._nvml, self.handle
        fields = Fields(
            nvml, [(FIELD_MEMORY_TEMPERATURE, "memory_temperature", 1), (FIELD_ENERGY, "energy_j", 1000)]
        )
        queries = [
            memory_query(nvml, handle, self._share_memory),
            self._temperature_query(),
            uint_query(nvml, ("nvmlDeviceGetPowerUsage",), (handle,), "power_w", 1000),
            uint_query(nvml, ("nvmlDeviceGetClockInfo",), (handle, SM_CLOCK), "sm_clock_mhz"),
            uint_query(nvml, ("nvmlDeviceGetClockInfo",), (handle, MEMORY_CLOCK), "memory_clock_mhz"),
            self._throttle_query(),
            Query(
                ("memory_temperature", "energy_j"),
                nvml.function("nvmlDeviceGetFieldValues"),
                (handle, fields.count, fields.array),
                fields.store,
            ),
        ]
        if self.mig:
            self.reasons.update(utilization=MIG_ON, memory_busy=MIG_ON)
        else:
            queries.append(self._utilization_query())
        return queries

    def _slow_queries(self) -> list[Query]:
        nvml, handle = self._nvml, self.handle
        limit = ("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit")
        ecc = (handle, UNCORRECTED, VOLATILE)
        return [
            uint_query(nvml, limit, (handle,), "power_limit_w", 1000),
            ulonglong_query(nvml, ("nvmlDeviceGetTotalEccErrors",), ecc, "ecc_uncorrected"),
            self._rows_query(),
        ]

    def _utilization_query(self) -> Query:
        rates = self._nvml.bindings.c_nvmlUtilization_t()

        def store(figures: Figures, reasons: Reasons) -> None:
            for key, percent in (("utilization", rates.gpu), ("memory_busy", rates.memory)):
                if percent <= 100:
                    figures[key] = percent
                    reasons.pop(key, None)
                else:
                    reasons[key] = f"NVML says {percent} %"

        function = self._nvml.function("nvmlDeviceGetUtilizationRates")
        return Query(("utilization", "memory_busy"), function, (self.handle, ctypes.byref(rates)), store)

    def _share_memory(self) -> None:
        self.shared_memory = True

    def _temperature_query(self) -> Query:
        """The old call first: the new one is absent in 535, the old one goes with CUDA 14."""
        reading = self._nvml.bindings.c_nvmlTemperature_v1_t()
        reading.version = self._nvml.bindings.nvmlTemperature_v1
        reading.sensorType = CORE_SENSOR

        def store(figures: Figures, _: Reasons) -> None:
            figures["temperature"] = reading.temperature

        newer = self._nvml.function("nvmlDeviceGetTemperatureV")
        otherwise = Query(("temperature",), newer, (self.handle, ctypes.byref(reading)), store)
        names, arguments = ("nvmlDeviceGetTemperature",), (self.handle, CORE_SENSOR)
        return uint_query(self._nvml, names, arguments, "temperature", otherwise=otherwise)

    def _throttle_query(self) -> Query:
        bits = ctypes.c_ulonglong()

        def store(figures: Figures, _: Reasons) -> None:
            value = bits.value
            if value & ~1:
                figures["throttle"] = [name for bit, name in THROTTLE if value & bit]

        function = self._nvml.function(
            "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        )
        return Query(("throttle",), function, (self.handle, ctypes.byref(bits)), store)

    def _rows_query(self) -> Query:
        corrected, uncorrected, pending, failure = (ctypes.c_uint() for _ in range(4))

        def store(figures: Figures, _: Reasons) -> None:
            figures["remapped_pending"] = bool(pending.value)
            figures["remapped_failure"] = bool(failure.value)

        places = tuple(ctypes.byref(value) for value in (corrected, uncorrected, pending, failure))
        function = self._nvml.function("nvmlDeviceGetRemappedRows")
        return Query(("remapped_pending", "remapped_failure"), function, (self.handle, *places), store)


def architecture(bindings: Any, value: int) -> str:
    """The word for an NVML_DEVICE_ARCH_* number: "Hopper"; its number where pynvml does not know it yet."""
    prefix = "NVML_DEVICE_ARCH_"
    for name in dir(bindings):
        if name.startswith(prefix) and getattr(bindings, name) == value:
            return name[len(prefix) :].capitalize()
    return str(value)
