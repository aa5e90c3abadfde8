"""What follows from a GPU's own figures: its peak memory throughput, and where a figure came from."""

from __future__ import annotations

import re

GPM = "gpm"
"""NVML's GPU Performance Monitoring counters, Hopper or newer."""
DCGM_EXPORTER = "dcgm-exporter"
"""An exporter that was already running; profiling is never started by us."""
MEMORY_BUSY = "memory busy"
"""The share of time in which memory was read or written: a duty cycle, no throughput."""

DEVICE = "the device's own clock and bus width"

TYPICAL_GB_S: tuple[tuple[str, float], ...] = (
    ("H100 NVL", 3939),
    ("H100 PCIe", 2039),
    ("H100 80GB HBM3", 3352),
    ("H200", 4917),
    ("A100-SXM4-80GB", 2039),
    ("A100 80GB PCIe", 1935),
    ("A100-SXM4-40GB", 1555),
    ("A100-PCIE-40GB", 1555),
    ("L40S", 864),
    ("RTX 6000 Ada", 960),
    ("RTX 4090", 1008),
    ("A10G", 600),
    ("Tesla T4", 320),
    ("L40", 864),
    ("L4", 300),
)
"""Peaks in 10^9 bytes/s by words of NVML's device name, from those boards' memory clocks and bus widths; the
first that fits counts. Used only where the device does not say."""


def peak_gb_s(max_memory_clock_mhz: float, bus_width_bits: int) -> float:
    """Peak DRAM throughput in 10^9 bytes per second.

    NVML reports half the data rate of HBM and GDDR alike, hence the factor 2: an H100 SXM's 2619 MHz on 5120
    bits make 3352 GB/s, an L40S's 9001 MHz on 384 bits 864 GB/s.
    """
    return max_memory_clock_mhz * 2 * bus_width_bits / 8 / 1000


def peak(
    name: str | None, max_memory_clock_mhz: float | None, bus_width_bits: int | None
) -> tuple[float, str] | None:
    """The peak DRAM throughput in 10^9 bytes per second, and what it rests on; None where nothing tells.

    The device's own figures come first. The table of typical boards is asked only without them, and the answer
    says so.
    """
    if max_memory_clock_mhz and bus_width_bits:
        return peak_gb_s(max_memory_clock_mhz, bus_width_bits), DEVICE
    for part, figure in TYPICAL_GB_S:
        if name is not None and re.search(rf"(?<!\w){re.escape(part)}(?!\w)", name):
            return figure, f"typical of a {part}"
    return None
