from __future__ import annotations

import pytest

from console.domain.telemetry.sample import CpuSample, GpuSample, HostSample, ModelSample, Sample, ServerSample
from console.domain.thresholds import Thresholds
from console.domain.words.problems import advice

GIB = 1 << 30


def sample(*, gpu: GpuSample | None = None, pending: int = 0, busy: float = 10.0) -> Sample:
    model = ModelSample(name="echo", version="1", state="READY", pending=pending)
    return Sample(
        droplet="d",
        time=0.0,
        seq=0,
        stream="s",
        interval=1.0,
        host=HostSample(cpu=CpuSample(busy_percent=busy)),
        gpus=() if gpu is None else (gpu,),
        servers=(ServerSample(name="triton", state="ready", models=(model,)),),
    )


def gpu(*, dram: float | None = None, used: int = 0, utilization: float | None = 50.0) -> GpuSample:
    return GpuSample(
        index=0,
        uuid="GPU-0",
        dram_percent=dram,
        memory_total=80 * GIB,
        memory_used=used,
        utilization_percent=utilization,
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (sample(gpu=gpu(dram=29.9), pending=3), "the batch may be too small"),
        (sample(gpu=gpu(dram=80.1)), "the bandwidth is saturated"),
        (sample(busy=70.1), "CPU 70.1 % is above 70 %: preprocessing"),
        (sample(gpu=gpu(used=79 * GIB, utilization=2.0)), "preallocated pool"),
    ],
)
def test_what_crosses_a_threshold_is_said_once(found: Sample, words: str) -> None:
    (said,) = advice(found, Thresholds())
    assert words in said


@pytest.mark.parametrize(
    "found",
    [
        sample(),
        sample(gpu=gpu(dram=29.9), pending=0),
        sample(gpu=gpu(dram=80.0)),
        sample(gpu=gpu(used=79 * GIB, utilization=60.0)),
        sample(gpu=gpu(used=79 * GIB, utilization=None)),
    ],
)
def test_a_quiet_or_busy_droplet_gets_no_advice(found: Sample) -> None:
    assert advice(found, Thresholds()) == []


def test_the_settings_move_the_thresholds() -> None:
    assert advice(sample(busy=75.0), Thresholds(cpu_high_percent=90.0)) == []
