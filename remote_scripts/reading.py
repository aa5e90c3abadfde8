"""What one look at all GPUs found, whichever way it was taken."""

from __future__ import annotations

from remote_scripts.gpu.nvml_processes import Held
from remote_scripts.gpu.nvml_query import Figures, Reasons

MAX_GPUS = 64
"""GPUs and MIG devices together that travel (docs/wire.md section 3)."""


class Reading:
    """What one tick found.

    Attributes:
        driver: the ``driver`` branch.
        gpus: the ``gpus`` branch.
        reasons: by GPU, key of a figure ("" for the whole GPU) to why it is not to be had.
        held: by GPU, on slow ticks, the processes on it or why there is no list.
        instances: by MIG device, its GPU's UUID and the id of its GPU instance.
        without_gpm: those whose DRAM throughput must come from elsewhere.
        left_out: GPUs and MIG devices beyond what travels.
        reason: why there is no GPU at all; None where that is known to be so, or there are some.
    """

    __slots__ = ("driver", "gpus", "held", "instances", "left_out", "reason", "reasons", "without_gpm")

    def __init__(self, driver: Figures) -> None:
        self.driver = driver
        self.gpus: dict[str, Figures] = {}
        self.reasons: dict[str, Reasons] = {}
        self.held: dict[str, Held | str] = {}
        self.instances: dict[str, tuple[str, str]] = {}
        self.without_gpm: set[str] = set()
        self.left_out = 0
        self.reason: str | None = None
