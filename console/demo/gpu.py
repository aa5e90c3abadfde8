"""The simulated H100, which says so in its name: how busy, hot and fast it is, from what the models do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from console.demo.catalogue import GIB

NAME = "NVIDIA H100 80GB HBM3 (simulated)"
UUID = "GPU-de300000-0000-4000-8000-000000000001"
DRIVER = "580.95.05"
TOTAL, RESERVED = 80 * GIB, GIB // 2
POWER_LIMIT_W, IDLE_W, WORK_W = 700.0, 95.0, 560.0
MAX_SM_CLOCK, HOT_SM_CLOCK, MAX_MEMORY_CLOCK = 1980, 1170, 2619
_COOL_C, _WORK_C, _BLOCKED_C = 33.0, 41.0, 30.0
_INERTIA_S = 7.0
_TOO_HOT_C, _COOL_ENOUGH_C = 86.0, 80.0
HOT_SLOWER = 1.55
"""What executions are slowed down by while it throttles."""
SW_THERMAL, HW_THERMAL, HW_SLOWDOWN, IDLE = 0x20, 0x40, 0x8, 0x1


@dataclass(slots=True)
class Gpu:
    """One GPU over time.

    Attributes:
        busy: Share of the time in which it worked, 0 to 1, over the last step; likewise ``dram``.
        sums: Cumulative seconds of what GPM measures, so that a reader's window may be any.
    """

    temperature: float = 41.0
    power_w: float = IDLE_W
    energy_j: float = 4.2e6
    busy: float = 0.0
    dram: float = 0.0
    throttled: bool = False
    sums: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("time", "sm", "tensor", "dram", "rx", "tx"), 0.0)
    )

    @property
    def slower(self) -> float:
        """What executions are slowed down by."""
        return HOT_SLOWER if self.throttled else 1.0

    @property
    def sm_clock(self) -> int:
        """MHz."""
        if self.throttled:
            return HOT_SM_CLOCK
        return MAX_SM_CLOCK - round(180 * self.busy) if self.busy > 0.02 else 345

    def advance(self, seconds: float, *, busy: float, dram: float, air_blocked: bool) -> None:
        """Go on for a while.

        Args:
            seconds: How long.
            busy: Share of it in which a kernel ran.
            dram: Share of the DRAM throughput's peak.
            air_blocked: The cooling is in trouble.
        """
        smooth = min(seconds / 0.6, 1.0)
        self.busy += (min(busy, 1.0) - self.busy) * smooth
        self.dram += (min(dram, 0.94) - self.dram) * smooth
        clock = self.sm_clock / MAX_SM_CLOCK
        self.power_w = IDLE_W + WORK_W * (0.75 * self.busy + 0.25 * self.dram) * clock
        self.energy_j += self.power_w * seconds
        target = _COOL_C + _WORK_C * self.power_w / (IDLE_W + WORK_W) + (_BLOCKED_C if air_blocked else 0.0)
        self.temperature += (target - self.temperature) * min(seconds / _INERTIA_S, 1.0)
        if self.temperature >= _TOO_HOT_C:
            self.throttled = True
        elif self.temperature < _COOL_ENOUGH_C:
            self.throttled = False
        for key, value in (
            ("time", 1.0),
            ("sm", 0.92 * self.busy),
            ("tensor", 0.55 * self.busy),
            ("dram", self.dram),
            ("rx", 900.0 * self.busy),
            ("tx", 350.0 * self.busy),
        ):
            self.sums[key] += value * seconds

    def state(self, holders: list[tuple[int, int]]) -> dict[str, Any]:
        """What ``nvml_library.py`` answers from, in NVML's own units.

        Args:
            holders: Process id and bytes of each process that holds memory.
        """
        used = sum(size for _, size in holders)
        reasons = (SW_THERMAL | HW_THERMAL | HW_SLOWDOWN) if self.throttled else IDLE if self.busy < 0.02 else 0
        return {
            "name": NAME,
            "uuid": UUID,
            "driver": DRIVER,
            "cuda": 13000,
            "architecture": 9,
            "bus_width": 5120,
            "max_memory_clock": MAX_MEMORY_CLOCK,
            "memory": [TOTAL, RESERVED, TOTAL - RESERVED - used, used],
            "temperature": round(self.temperature),
            "memory_temperature": round(self.temperature + 8),
            "power_mw": round(self.power_w * 1000),
            "power_limit_mw": round(POWER_LIMIT_W * 1000),
            "energy_mj": round(self.energy_j * 1000),
            "sm_clock": self.sm_clock,
            "memory_clock": MAX_MEMORY_CLOCK,
            "utilization": round(100 * self.busy),
            "memory_busy": round(100 * min(1.15 * self.dram, 1.0)),
            "reasons": reasons,
            "sums": self.sums,
            "processes": holders,
        }
