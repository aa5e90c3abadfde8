from __future__ import annotations

import dataclasses

import pytest

from console.domain.telemetry.sample import CpuSample, GpuSample, HostSample, ModelSample, Sample, ServerSample
from console.domain.thresholds import Thresholds
from console.domain.words.models import readiness
from console.domain.words.problems import advice, problems

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
        (sample(busy=70.1, gpu=gpu(utilization=79.9)), "preprocessing may hold the GPUs back"),
        (sample(busy=70.1, gpu=gpu(utilization=None)), "preprocessing may hold the GPUs back"),
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
        sample(busy=99.0, gpu=gpu(utilization=80.0)),
        sample(gpu=gpu(used=79 * GIB, utilization=60.0)),
        sample(gpu=gpu(used=79 * GIB, utilization=None)),
    ],
)
def test_a_quiet_or_busy_droplet_gets_no_advice(found: Sample) -> None:
    assert advice(found, Thresholds()) == []


def test_the_settings_move_the_thresholds() -> None:
    assert advice(sample(busy=75.0), Thresholds(cpu_high_percent=90.0)) == []


def served(mode: str | None, *models: ModelSample) -> Sample:
    ready = sum(model.state == "READY" for model in models)
    server = ServerSample("triton", "ready", control_mode=mode, models=models)
    whole = dataclasses.replace(server, models_ready=ready, models_total=len(models))
    return dataclasses.replace(sample(), servers=(whole,))


READY = ModelSample("echo", "1", "READY")
UNKNOWN = ModelSample("cached", "-", "UNKNOWN")
UNLOADED = ModelSample("once", "1", "UNAVAILABLE", reason="unloaded")
BROKEN = ModelSample("broken", "1", "UNAVAILABLE", reason="no such file")


def test_what_nobody_told_triton_to_load_is_no_fault() -> None:
    found = served("explicit", READY, UNKNOWN, UNLOADED)
    assert problems(found) == []
    assert readiness(found.servers[0]) == "1 model ready"
    found = served("explicit", READY, UNKNOWN, BROKEN)
    assert problems(found) == ["model broken/1 on triton is UNAVAILABLE: no such file"]
    assert readiness(found.servers[0]) == "1 of 2 models ready"


@pytest.mark.parametrize("mode", ["none", "poll"])
def test_what_triton_should_have_loaded_and_did_not_is_a_problem(mode: str) -> None:
    found = served(mode, READY, UNKNOWN)
    (said,) = problems(found)
    assert said.startswith(
        f"model cached on triton is not loaded, though Triton loads every model (model-control-mode {mode})"
    )
    assert readiness(found.servers[0]) == "1 of 2 models ready"


def test_without_a_command_line_nothing_is_concluded() -> None:
    found = served(None, READY, UNKNOWN)
    assert problems(found) == []
    assert readiness(found.servers[0]) == "1 of 2 models ready"
    assert readiness(ServerSample("triton", "dead")) is None
