"""Scenarios for the NVML stub: GPUs as dataclasses, and the text file that the stub reads."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from urllib.parse import quote_from_bytes

MIB = 1024 * 1024
GIB = 1024 * MIB

# NVML's codes (nvml.h).
NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, GPU_IS_LOST, RESET_REQUIRED, LIBRARY_MISMATCH, UNKNOWN = (
    3, 4, 9, 15, 16, 18, 999,
)  # fmt: skip
AMPERE, ADA, HOPPER = 7, 8, 9
# GPM metrics.
SM_UTIL, ANY_TENSOR_UTIL, DRAM_BW_UTIL, PCIE_TX, PCIE_RX = 2, 5, 10, 20, 21
# Clocks event reasons.
GPU_IDLE, SW_POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL = 0x1, 0x4, 0x8, 0x20, 0x40


@dataclass(frozen=True, slots=True)
class Mig:
    """One MIG device; what it does not name is not supported, as on a real one."""

    name: str | bytes
    uuid: str
    gpu_instance: int
    compute_instance: int = 0
    memory_total: int | None = None
    memory_reserved: int | None = None
    memory_used: int | None = None
    gpm: Mapping[int, float] = field(default_factory=dict)
    processes: Mapping[int, int | None] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. None is "not supported"; field names are the stub's keys, units are NVML's own."""

    name: str | bytes
    uuid: str | bytes
    pci: str = "00000000:19:00.0"
    serial: str | None = None
    architecture: int = HOPPER
    compute_capability: int | None = 90
    bus_width: int | None = 5120
    utilization: int | None = 0
    memory_busy: int | None = 0
    memory_total: int | None = 80 * GIB
    memory_reserved: int | None = 500 * MIB
    memory_used: int | None = 0
    temperature: int | None = 35
    memory_temperature: int | None = None
    power_mw: int | None = 70_000
    power_limit_mw: int | None = 700_000
    energy_mj: int | None = 0
    energy_rate_mw: int | None = None
    """How fast ``energy_mj`` grows from the moment the scenario was written."""
    clock_graphics: int | None = 345
    clock_sm: int | None = 345
    clock_memory: int | None = 2619
    max_clock_graphics: int | None = 1980
    max_clock_sm: int | None = 1980
    max_clock_memory: int | None = 2619
    event_reasons: int | None = GPU_IDLE
    ecc_mode: int | None = 1
    ecc_corrected_volatile: int | None = 0
    ecc_uncorrected_volatile: int | None = 0
    ecc_corrected_aggregate: int | None = 0
    ecc_uncorrected_aggregate: int | None = 0
    remapped_corrected: int | None = 0
    remapped_uncorrected: int | None = 0
    remapped_pending: int | None = 0
    remapped_failure: int | None = 0
    persistence: int | None = 1
    compute_mode: int | None = 0
    compute_mode_text: str | None = "Default"
    virtualization: int | None = 0
    pstate: int | None = 0
    fan: int | None = None
    pcie_generation: int | None = 5
    pcie_width: int | None = 16
    mig_mode: int | None = None
    gpm: Mapping[int, float] | None = None
    """Metric id to value; None where the device has no GPM. A value may be NaN."""
    processes: Mapping[int, int | None] = field(default_factory=dict)
    """Compute processes: host pid to bytes, None where the driver does not say."""
    graphics_processes: Mapping[int, int | None] = field(default_factory=dict)
    migs: tuple[Mig, ...] = ()
    errors: Mapping[str, int] = field(default_factory=dict)
    """NVML function to the code it fails with on this GPU; "*" for all of them."""
    delays_ms: Mapping[str, float] = field(default_factory=dict)
    """NVML function to how long it takes; "*" for all of them."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A machine's GPUs and driver."""

    gpus: tuple[Gpu, ...] = ()
    driver_version: str = "580.95.05"
    nvml_version: str = "13.580.95.05"
    cuda_version: int = 13000
    errors: Mapping[str, int] = field(default_factory=dict)
    delays_ms: Mapping[str, float] = field(default_factory=dict)

    def text(self) -> str:
        """The file that the stub reads."""
        lines = [
            f"driver_version = {self.driver_version}",
            f"nvml_version = {self.nvml_version}",
            f"cuda_version = {self.cuda_version}",
            f"count = {len(self.gpus)}",
            *_failures("", self.errors, self.delays_ms),
        ]
        for number, gpu in enumerate(self.gpus):
            lines += _device(f"gpu{number}.", gpu)
            for index, mig in enumerate(gpu.migs):
                lines += _device(f"gpu{number}.mig{index}.", mig)
        return "\n".join(lines) + "\n"

    def write(self, path: Path) -> None:
        """Put it in force: in one step, so that no call ever reads half of it."""
        scratch = path.with_name(f"{path.name}.{os.getpid()}.{time.monotonic_ns()}")
        scratch.write_text(self.text())
        scratch.replace(path)

    def change(self, index: int, **changes: object) -> Scenario:
        """The same with some fields of one GPU changed."""
        gpus = list(self.gpus)
        gpus[index] = replace(gpus[index], **changes)  # type: ignore[arg-type]
        return replace(self, gpus=tuple(gpus))


def _device(scope: str, device: Gpu | Mig) -> list[str]:
    lines = []
    for one in fields(device):
        value = getattr(device, one.name)
        if isinstance(value, str | bytes):
            lines.append(f"{scope}{one.name} = {_quoted(value)}")
        elif isinstance(value, int):
            lines.append(f"{scope}{one.name} = {value}")
        elif one.name.endswith("processes"):
            holders = " ".join(f"{pid}:{'-' if size is None else size}" for pid, size in value.items())
            lines.append(f"{scope}{one.name} = {holders}")
    if device.gpm is not None:
        lines.append(f"{scope}gpm = 1")
        lines += [f"{scope}gpm.{metric} = {value}" for metric, value in device.gpm.items()]
    delays = device.delays_ms if isinstance(device, Gpu) else {}
    return [*lines, *_failures(scope, device.errors, delays)]


def _failures(scope: str, errors: Mapping[str, int], delays_ms: Mapping[str, float]) -> list[str]:
    return [
        f"{scope}{kind}{'' if function == '*' else '.' + function} = {value}"
        for kind, entries in (("error", errors), ("delay_ms", delays_ms))
        for function, value in entries.items()
    ]


def _quoted(value: str | bytes) -> str:
    return quote_from_bytes(value.encode() if isinstance(value, str) else value, safe=" :-/().")
