from __future__ import annotations

from typing import Any

import pytest

from console.domain import gpu
from console.domain.telemetry.sample import Sample
from tests.unit.telemetry_fake import FakeDroplet, Watched

H100: dict[str, Any] = {
    "index": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "state": "ok",
    "max_memory_clock_mhz": 2619,
    "bus_width_bits": 5120,
    "utilization": 97,
    "memory_busy": 41,
    "dram_percent": 62.5,
    "dram_source": "gpm",
}


def sample_of(*gpus: dict[str, Any], **unavailable: str) -> Sample:
    devices = {f"GPU-{number}": device for number, device in enumerate(gpus)}
    reasons = {f"/gpus/GPU-0/{name}": reason for name, reason in unavailable.items()}
    return Watched(FakeDroplet(gpus=devices, unavailable=reasons)).tick()


@pytest.mark.parametrize(
    ("clock", "bits", "gigabytes"),
    [
        (2619, 5120, 3352.32),
        (9001, 384, 864.096),
        (1593, 5120, 2039.04),
        (3201, 6144, 4916.736),
        (6251, 192, 300.048),
    ],
)
def test_the_peak_is_the_device_s_own(clock: int, bits: int, gigabytes: float) -> None:
    assert gpu.peak_gb_s(clock, bits) == pytest.approx(gigabytes, abs=1e-9)
    assert gpu.peak("anything", clock, bits) == (gpu.peak_gb_s(clock, bits), gpu.DEVICE)


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("NVIDIA H100 80GB HBM3", 3352),
        ("NVIDIA H100 PCIe", 2039),
        ("NVIDIA H200", 4917),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA L40S", 864),
        ("NVIDIA L4", 300),
        ("Tesla T4", 320),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA T400", None),
        (None, None),
    ],
)
def test_the_table_is_asked_only_where_the_device_does_not_say(name: str | None, figure: float | None) -> None:
    found = gpu.peak(name, None, 5120)
    assert (found and found[0]) == figure
    assert found is None or found[1].startswith("typical of a")


def test_throughput_is_percent_of_peak_to_the_last_digit() -> None:
    device = sample_of(H100).gpus[0]
    assert (device.dram_percent, device.dram_source) == (62.5, "gpm")
    assert device.dram_peak_gb_s == 2619 * 2 * 5120 / 8 / 1000
    assert device.dram_gb_s == 2619 * 2 * 5120 / 8 / 1000 * 62.5 / 100
    assert device.dram_peak_basis == gpu.DEVICE


def test_without_gpm_the_duty_cycle_goes_by_its_own_name() -> None:
    l40s = {key: value for key, value in H100.items() if not key.startswith("dram")}
    sample = sample_of(l40s, dram_percent="the GPU does not support GPM (Hopper or newer does)")
    device = sample.gpus[0]
    assert (device.dram_percent, device.dram_gb_s, device.memory_busy_percent) == (None, None, 41)
    assert device.dram_source == "memory busy"
    for figure in ("dram_percent", "dram_gb_s"):
        assert sample.unavailable[f"/gpus/0/{figure}"] == "the GPU does not support GPM (Hopper or newer does)"


@pytest.mark.parametrize("mig", [{"mig": True}, {"parent": "GPU-9"}])
def test_on_mig_a_percentage_has_no_gigabytes(mig: dict[str, Any]) -> None:
    sample = sample_of({**H100, **mig})
    device = sample.gpus[0]
    assert (device.mig, device.dram_percent, device.dram_gb_s, device.dram_peak_gb_s) == (True, 62.5, None, None)
    assert "MIG" in sample.unavailable["/gpus/0/dram_gb_s"]


def test_a_percentage_beyond_100_is_none() -> None:
    sample = sample_of({**H100, "dram_percent": 100.5})
    assert sample.gpus[0].dram_percent is None
    assert "percentage" in sample.unavailable["/gpus/0/dram_percent"]


def test_a_lost_gpu_keeps_its_place_and_says_so_for_every_figure() -> None:
    lost = {"index": 0, "name": "NVIDIA H100", "state": "lost", "reason": "GPU is lost"}
    sample = sample_of(lost, {**H100, "index": 1})
    assert [device.state for device in sample.gpus] == ["lost", "ok"]
    assert sample.gpus[0].state_reason == "GPU is lost"
    assert sample.unavailable["/gpus/0/utilization_percent"] == "the GPU is lost: GPU is lost"
    assert sample.gpus[1].utilization_percent == 97


def test_gpus_stand_by_index_each_before_its_mig_devices() -> None:
    mig = {"index": 0, "parent": "GPU-2", "state": "ok"}
    sample = sample_of({**H100, "index": 1}, mig, {**H100, "index": 0})
    assert [device.uuid for device in sample.gpus] == ["GPU-2", "GPU-1", "GPU-0"]


def test_no_gpus_at_all_has_its_reason() -> None:
    watched = Watched(FakeDroplet(unavailable={"/gpus": "no NVIDIA driver is loaded"}))
    sample = watched.tick()
    assert sample.gpus == ()
    assert sample.unavailable["/gpus"] == "no NVIDIA driver is loaded"


def test_holders_of_memory_are_told_apart() -> None:
    holders = [
        {
            "pid": 7,
            "process": "tritonserver",
            "memory": 5,
            "container": "triton",
            "server": "triton",
            "model": "echo",
        },
        {"pid": 8, "process": "python3\x1b[2J", "orphan": True},
    ]
    sample = sample_of({**H100, "holders": holders})
    first, second = sample.gpus[0].holders
    assert (first.pid, first.memory, first.container, first.model, first.orphan) == (7, 5, "triton", "echo", False)
    assert (second.process, second.memory, second.orphan) == ("python3\\x1b[2J", None, True)
    assert "driver does not say" in sample.unavailable["/gpus/0/holders/1/memory"]


@pytest.mark.parametrize("holders", ["many", [1], [{"process": "x"}], [{"pid": -1}], [{"pid": 1}] * 300])
def test_holders_that_are_none_are_left_out(holders: object) -> None:
    sample = sample_of({**H100, "holders": holders})
    assert sample.gpus[0].holders == ()
    assert "/gpus/0/holders" in sample.unavailable
