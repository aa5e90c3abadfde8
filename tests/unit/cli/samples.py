"""Samples of a droplet with everything: four GPUs in four conditions, three models in three."""

from __future__ import annotations

import dataclasses

from console.domain.telemetry.sample import (
    CpuSample,
    Failures,
    GpuHolder,
    GpuSample,
    HostSample,
    ModelSample,
    Sample,
    ServerSample,
)

GIB = 1 << 30
NO_GPM = "the GPU does not support GPM (Hopper or newer does)"
DECOUPLED = "the model is decoupled: it may answer a request many times"


def gpu(index: int, **more: object) -> GpuSample:
    made = GpuSample(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA H100 80GB HBM3",
        utilization_percent=87,
        memory_busy_percent=40,
        memory_total=80 * GIB,
        memory_used=61 * GIB,
        temperature_c=62,
        power_w=412,
        dram_percent=62.5,
        dram_gb_s=2095.0,
        dram_peak_gb_s=3352.0,
        dram_source="gpm",
    )
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def model(**more: object) -> ModelSample:
    made = ModelSample(
        name="echo",
        version="1",
        state="READY",
        rps=812.3,
        hit_rate=87.5,
        mean_batch=8.0,
        fill_percent=100.0,
        error_percent=0.02,
        queue_ms=1.2,
        compute_infer_ms=3.4,
        window_batches={1: 3, 8: 120},
        average={"hit_rate": 83.1, "mean_batch": 6.9},
        failures=Failures(backend=3, rejected=2),
        last_inference=1_796_000_000.0,
    )
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def server(*models: ModelSample, **more: object) -> ServerSample:
    made = ServerSample(
        name="triton",
        state="ready",
        how="unit",
        unit="triton.service",
        version="2.51.0",
        http="127.0.0.1:8000",
        models=models,
        models_ready=sum(model.state == "READY" for model in models),
        models_total=len(models),
        started=1_795_990_000.0,
    )
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


HOST = HostSample(
    hostname="ml-h100",
    boot_id="b",
    uptime_s=1_043_200.0,
    cpu=CpuSample(cores=20, busy_percent=12.3, iowait_percent=0.2, steal_percent=0.0, load1=1.31),
    memory_total=240 * GIB,
    memory_available=206 * GIB,
    swap_total=0,
    swap_used=0,
    disk_total=720 * GIB,
    disk_free=208 * GIB,
    disk_read_rate=1.2e6,
    disk_write_rate=0.0,
    net_rx_rate=1.2e6,
    net_tx_rate=4.5e6,
)


def sample(droplet: str = "prod", **more: object) -> Sample:
    made = Sample(
        droplet=droplet,
        time=1_796_000_001.0,
        seq=1,
        stream="s",
        interval=1.0,
        host=HOST,
        gpus=(gpu(0),),
        driver_version="550.54.15",
        gpu_source="nvml",
        servers=(server(model()),),
    )
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def troubled(droplet: str = "prod") -> Sample:
    return sample(
        droplet,
        gpus=(
            gpu(0, throttle=("SwPowerCap",)),
            gpu(1, holders=(GpuHolder(999, "python3", 12 * GIB, orphan=True),)),
            gpu(2, dram_percent=None, dram_gb_s=None, dram_source="memory busy", name="NVIDIA L40S"),
            GpuSample(index=3, uuid="GPU-3", state="lost", state_reason="the GPU has fallen off the bus"),
        ),
        servers=(
            server(
                model(pending=3),
                model(name="stream", hit_rate=None, mean_batch=None, fill_percent=None, running=3.0, average={}),
                ModelSample("broken", "1", "UNAVAILABLE", reason="failed to stat file /models/broken/1/model.onnx"),
            ),
        ),
        unavailable={
            "/gpus/2/dram_percent": NO_GPM,
            "/gpus/2/dram_gb_s": NO_GPM,
            **{f"/servers/0/models/1/{key}": DECOUPLED for key in ("hit_rate", "mean_batch", "fill_percent")},
        },
    )
