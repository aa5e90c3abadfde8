"""What in a picture wants a hand, and what deserves a look. Deeper findings are the doctor's."""

from __future__ import annotations

from collections.abc import Iterator

from console.domain.telemetry.sample import GpuSample, Sample, ServerSample
from console.domain.thresholds import Thresholds
from console.domain.words.gpus import gpu_number
from console.domain.words.models import UNLOADED, missing, model_name

_WELL = frozenset({"ready"})
_SPARE = 80.0
"""Percent of utilisation below which something else than the GPU may be what is short."""
_LITTLE_ACTIVITY = 10.0
"""Percent of utilisation."""


def problems(sample: Sample) -> list[str]:
    """What is not well, one sentence each; empty where all is well. Decides the exit status."""
    return [
        *(f"GPU {gpu_number(gpu, sample.gpus)} is {_state(gpu)}" for gpu in sample.gpus if gpu.state != "ok"),
        *(text for server in sample.servers for text in _server(server)),
    ]


def advice(sample: Sample, thresholds: Thresholds) -> list[str]:
    """What the thresholds of the settings say about this picture."""
    found = []
    busy = sample.host.cpu.busy_percent
    used = [gpu.utilization_percent for gpu in sample.gpus]
    spare = not used or any(percent is None or percent < _SPARE for percent in used)
    if busy is not None and busy > thresholds.cpu_high_percent and spare:
        found.append(
            f"CPU {busy:.1f} % is above {thresholds.cpu_high_percent:g} %: preprocessing may hold the GPUs back"
        )
    waiting = any((model.pending or 0) > 0 for server in sample.servers for model in server.models)
    for gpu in sample.gpus:
        own = gpu_number(gpu, sample.gpus)
        found += _preallocated(gpu, own, thresholds)
        if gpu.dram_percent is None:
            continue
        if gpu.dram_percent > thresholds.dram_high_percent:
            found.append(
                f"GPU {own}: DRAM throughput {gpu.dram_percent:.1f} % is above "
                f"{thresholds.dram_high_percent:g} %: the bandwidth is saturated, a smaller batch may serve better"
            )
        elif waiting and gpu.dram_percent < thresholds.dram_low_percent:
            found.append(
                f"GPU {own}: DRAM throughput {gpu.dram_percent:.1f} % is below "
                f"{thresholds.dram_low_percent:g} % while requests wait: the batch may be too small"
            )
    return found


def _preallocated(gpu: GpuSample, own: str, thresholds: Thresholds) -> list[str]:
    if not gpu.memory_total or gpu.memory_used is None or gpu.utilization_percent is None:
        return []
    used = 100 * gpu.memory_used / gpu.memory_total
    if used <= thresholds.memory_high_percent or gpu.utilization_percent >= _LITTLE_ACTIVITY:
        return []
    return [
        f"GPU {own}: {used:.0f} % of its memory is held with little activity: "
        "most likely a framework's preallocated pool, and no fault"
    ]


def _server(server: ServerSample) -> Iterator[str]:
    if server.state not in _WELL:
        reason = f": {server.reason}" if server.reason else ""
        yield f"Triton server {server.name} is {server.state}{reason}"
    for model in server.models:
        if model.state == "UNAVAILABLE" and (model.reason or "") not in UNLOADED:
            yield f"model {model_name(model)} on {server.name} is UNAVAILABLE: {model.reason}"
        elif missing(model, server):
            yield (
                f"model {model_name(model)} on {server.name} is not loaded, though Triton loads every model"
                f" (model-control-mode {server.control_mode}): most likely its config cannot be read; Triton's log"
                " says why"
            )


def _state(gpu: GpuSample) -> str:
    words = {"lost": "lost", "error": "in error"}.get(gpu.state, gpu.state)
    return f"{words}: {gpu.state_reason}" if gpu.state_reason else words
