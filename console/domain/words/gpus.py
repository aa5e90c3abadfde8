"""How GPUs and MIG devices are called."""

from __future__ import annotations

from collections.abc import Sequence

from console.domain.telemetry.sample import GpuSample

NONE = "the driver works and finds no GPU"


def gpu_number(gpu: GpuSample, gpus: Sequence[GpuSample]) -> str:
    """Which one it is: "3", and "3:1" for MIG device 1 of GPU 3, as NVIDIA_VISIBLE_DEVICES has it.

    A MIG device's own number begins anew on each GPU, so it alone would name another GPU.
    """
    if gpu.parent is None:
        return str(gpu.index)
    whole = next((other.index for other in gpus if other.uuid == gpu.parent), None)
    return f"{'MIG' if whole is None else whole}:{gpu.index}"
