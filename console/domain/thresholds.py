"""The thresholds that advice starts from; the settings may change each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """In percent, each with what follows when it is crossed."""

    dram_low_percent: float = 30.0
    """DRAM throughput below this with requests waiting: the batch is too small."""
    dram_high_percent: float = 80.0
    """DRAM throughput above this: the bandwidth is saturated, a larger batch will not help."""
    cpu_high_percent: float = 70.0
    """Processor time above this: preprocessing holds the GPU back."""
    memory_high_percent: float = 95.0
    """GPU memory above this with little activity: the framework's preallocated pool, no fault."""
