"""Ready-made scenarios: the machines that the product meets.

Memory clocks and bus widths are such that the peak that follows from them is the vendor's: H100 SXM 3352 GB/s, L40S
864 GB/s, A100 2039 GB/s.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tests.lab.nvml.scenario import (
    ADA,
    AMPERE,
    ANY_TENSOR_UTIL,
    DRAM_BW_UTIL,
    DRIVER_NOT_LOADED,
    GIB,
    GPU_IS_LOST,
    HW_SLOWDOWN,
    HW_THERMAL,
    LIBRARY_MISMATCH,
    MIB,
    NO_PERMISSION,
    PCIE_RX,
    PCIE_TX,
    SM_UTIL,
    SW_THERMAL,
    Gpu,
    Mig,
    Scenario,
)


def h100(number: int = 0) -> Gpu:
    """An H100 SXM at work: 62.5 % of its DRAM throughput, 2095 GB/s."""
    return Gpu(
        name="NVIDIA H100 80GB HBM3",
        uuid=f"GPU-1ab5c6d7-0000-4000-8000-{number:012x}",
        pci=f"00000000:{0x19 + number:02X}:00.0",
        serial=f"16500000000{number:02}",
        utilization=97,
        memory_busy=55,
        memory_used=41 * GIB + number * GIB,
        temperature=61 + number,
        memory_temperature=70 + number,
        power_mw=512_340 + 1000 * number,
        energy_mj=9_000_000_000 + number,
        energy_rate_mw=512_340,
        clock_graphics=1755,
        clock_sm=1755,
        event_reasons=0,
        mig_mode=0,
        gpm={SM_UTIL: 91.25, ANY_TENSOR_UTIL: 48.5, DRAM_BW_UTIL: 62.5, PCIE_TX: 1200.5, PCIE_RX: 800.25},
    )


def l40s(number: int = 0) -> Gpu:
    """An L40S: GDDR6, no GPM, no memory temperature, no MIG."""
    return Gpu(
        name="NVIDIA L40S",
        uuid=f"GPU-2cd7e8f9-0000-4000-8000-{number:012x}",
        pci=f"00000000:{0x41 + number:02X}:00.0",
        architecture=ADA,
        compute_capability=89,
        bus_width=384,
        utilization=64,
        memory_busy=38,
        memory_total=46068 * MIB,
        memory_reserved=526 * MIB,
        memory_used=12 * GIB,
        temperature=57,
        power_mw=248_900,
        power_limit_mw=350_000,
        energy_mj=1_000_000_000,
        energy_rate_mw=248_900,
        clock_graphics=2490,
        clock_sm=2490,
        clock_memory=9001,
        max_clock_graphics=2520,
        max_clock_sm=2520,
        max_clock_memory=9001,
        event_reasons=0,
        pcie_generation=4,
    )


def a100() -> Gpu:
    """An A100: MIG and HBM, no GPM."""
    return replace(
        h100(),
        name="NVIDIA A100-SXM4-80GB",
        uuid="GPU-3ef1a2b3-0000-4000-8000-000000000000",
        architecture=AMPERE,
        compute_capability=80,
        clock_memory=1593,
        max_clock_memory=1593,
        power_limit_mw=400_000,
        power_mw=301_000,
        gpm=None,
    )


def h100_with_mig() -> Gpu:
    """An H100 cut in two: utilisation is not to be had, GPM is for each half."""
    halves = tuple(
        Mig(
            name="NVIDIA H100 80GB HBM3 MIG 3g.40gb",
            uuid=f"MIG-4ab5c6d7-0000-4000-8000-{number:012x}",
            gpu_instance=number + 1,
            memory_total=40448 * MIB,
            memory_used=(number + 1) * 10 * GIB,
            gpm={SM_UTIL: 50.0 + number, ANY_TENSOR_UTIL: 20.0 + number, DRAM_BW_UTIL: 30.0 + number},
        )
        for number in range(2)
    )
    return replace(h100(), mig_mode=1, utilization=None, memory_busy=None, migs=halves)


ONE_H100 = Scenario((h100(),))
EIGHT_H100 = Scenario(tuple(h100(number) for number in range(8)))
ONE_L40S = Scenario((l40s(),), driver_version="550.54.15", nvml_version="12.550.54.15", cuda_version=12040)
ONE_A100 = Scenario((a100(),))
MIG_ON = Scenario((h100_with_mig(),))
LOST = EIGHT_H100.change(3, errors={"*": GPU_IS_LOST})
MISMATCH = replace(ONE_H100, errors={"nvmlInitWithFlags": LIBRARY_MISMATCH})
NO_DRIVER = replace(ONE_H100, errors={"nvmlInitWithFlags": DRIVER_NOT_LOADED})
NO_GPUS = Scenario()
NO_GPM_PERMISSION = ONE_H100.change(0, errors={"nvmlGpmSampleGet": NO_PERMISSION})
HOT = ONE_H100.change(
    0, temperature=91, memory_temperature=103, event_reasons=HW_SLOWDOWN | SW_THERMAL | HW_THERMAL
)
NAN = ONE_H100.change(0, gpm={SM_UTIL: math.nan, ANY_TENSOR_UTIL: 48.5, DRAM_BW_UTIL: math.nan})
SLOW = ONE_H100.change(0, delays_ms={"nvmlDeviceGetUtilizationRates": 400})
HOSTILE_NAMES = Scenario(
    tuple(
        replace(h100(number), name=name)
        for number, name in enumerate(
            (
                b"\x1b]0;owned\x07\x1b[31mNVIDIA",
                b"NVIDIA\x00 hidden",
                b"NVIDIA \xff\xfe\x80 H100",
                b"[bold red]NVIDIA[/] {name} $(id) `id`",
                b"N" * 200,
                "NVIDIA \u202eB001H\u2066".encode(),
                b"NVIDIA\r\n\x9b2J",
            )
        )
    )
)
