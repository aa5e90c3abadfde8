from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lab.nvml import NoCompilerError, Scenario, build, machines
from tests.lab.nvml.scenario import DRIVER_NOT_LOADED, GIB, GPU_IS_LOST, LIBRARY_MISMATCH, MIB
from tests.remote_scripts.gpu_lab import Collector

Start = Callable[..., Collector]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A collector whose Python cannot load the library that lies there: it is no library."""
    running: list[Collector] = []
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "libnvidia-ml.so.1").write_text("not a library")

    def begin(scenario: Scenario | None, *, script: str | None = None, **options: Any) -> Collector:
        if script is not None:
            folder = tmp_path / "bin"
            folder.mkdir()
            (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
            (folder / "nvidia-smi").chmod(0o755)
        else:
            try:
                folder = build(tmp_path / "nvml")
            except NoCompilerError as error:
                pytest.skip(str(error))
        root = tmp_path / "root"
        (root / "proc").mkdir(parents=True)
        (root / "proc/meminfo").symlink_to("/proc/meminfo")
        collector = Collector(folder, scenario, root=root, path=[str(folder)], library_path=broken, **options)
        running.append(collector)
        return collector

    yield begin
    for collector in running:
        collector.close()


def test_what_nvidia_smi_knows_is_read_from_its_loop(start: Start) -> None:
    collector = start(machines.EIGHT_H100)
    tick = collector.tick(slow=True)
    assert tick.doc["driver"] == {"source": "nvidia-smi", "version": "580.95.05"}
    assert list(tick.gpus) == [machines.h100(number).uuid for number in range(8)]
    gpu = next(iter(tick.gpus.values()))
    assert gpu["name"] == "NVIDIA H100 80GB HBM3"
    assert gpu["memory_used"] == 41 * GIB
    assert gpu["memory_total"] == 80 * GIB
    assert gpu["memory_reserved"] == 500 * MIB
    assert (gpu["utilization"], gpu["memory_busy"]) == (97, 55)
    assert (gpu["temperature"], gpu["memory_temperature"]) == (61, 70)
    assert (gpu["power_w"], gpu["power_limit_w"]) == (512.34, 700)
    assert (gpu["sm_clock_mhz"], gpu["memory_clock_mhz"], gpu["max_memory_clock_mhz"]) == (1755, 2619, 2619)
    assert gpu["ecc_uncorrected"] == 0
    assert "throttle" not in gpu
    assert "nvidia-smi does not report it" in tick.reason("dram_percent")
    assert "no DCGM exporter" in tick.reason("dram_percent")
    assert "nvidia-smi does not report it" in tick.reason("energy_j")


def test_figures_follow_what_happens(start: Start) -> None:
    collector = start(machines.ONE_H100)
    assert collector.tick().gpu["temperature"] == 61
    collector.set(machines.HOT)
    hot = collector.tick(wait=2.2).gpu
    assert hot["temperature"] == 91
    assert hot["throttle"] == ["HwSlowdown", "SwThermalSlowdown", "HwThermalSlowdown"]


def test_cells_without_a_number_are_reasons(start: Start) -> None:
    tick = start(machines.ONE_L40S).tick()
    assert "memory_temperature" not in tick.gpu
    assert tick.reason("memory_temperature") == "nvidia-smi says N/A"
    assert "mig" not in tick.gpu


def test_processes_are_told_on_slow_ticks(start: Start) -> None:
    pid = os.getpid()
    tick = start(machines.ONE_H100.change(0, processes={pid: 3 * GIB, 4_000_000: None})).tick(slow=True)
    assert [(one["pid"], one.get("memory")) for one in tick.gpu["holders"]] == [(pid, 3 * GIB), (4_000_000, None)]
    assert tick.reason("holders/1/memory") == "the driver does not say how much"


def test_a_gpu_that_the_loop_ends_at_is_an_error_and_those_before_it_go_on(start: Start) -> None:
    collector = start(machines.EIGHT_H100)
    collector.tick()
    lost = {"nvmlDeviceGetHandleByIndex_v2": GPU_IS_LOST}
    collector.set(machines.EIGHT_H100.change(3, errors=lost))
    for _ in range(9):
        tick = collector.tick(wait=0.5)
    states = [gpu["state"] for gpu in tick.gpus.values()]
    assert states == ["ok"] * 3 + ["error"] * 5
    assert "GPU is lost" in tick.gpus[str(machines.h100(3).uuid)]["reason"]
    collector.set(machines.EIGHT_H100)
    collector.tick(after=3)
    back = collector.tick(wait=1)
    assert [gpu["state"] for gpu in back.gpus.values()] == ["ok"] * 8


def test_a_lost_cell_makes_a_lost_gpu(start: Start) -> None:
    collector = start(machines.ONE_H100.change(0, errors={"nvmlDeviceGetTemperature": GPU_IS_LOST}))
    gpu = collector.tick().gpu
    assert (gpu["state"], gpu["reason"]) == ("lost", "GPU is lost")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (DRIVER_NOT_LOADED, "couldn't communicate with the NVIDIA driver"),
        (LIBRARY_MISMATCH, "Driver/library version mismatch; NVML library version: 13.580.95.05"),
    ],
)
def test_nvidia_smis_own_words_are_the_reason(start: Start, code: int, words: str) -> None:
    collector = start(replace(machines.ONE_H100, errors={"nvmlInitWithFlags": code}))
    tick = collector.tick()
    assert "gpus" not in tick.doc
    assert words in tick.unavailable["/gpus"]


def test_no_gpus_are_said_so(start: Start) -> None:
    assert start(machines.NO_GPUS).tick().unavailable["/gpus"] == "No devices were found"


ROW = '0, GPU-1, NVIDIA, the "best" GPU, 450.80.02, 7, [Not Supported], 81920, 500, 40960, 40460, 30, ERR!, 55.25'
ROW += ", 300.00, 1410, 1215, 1215, 0x0000000000000004, [Unknown Error], [N/A]"


def test_fields_that_it_does_not_know_are_asked_under_their_other_name_or_left_out(start: Start) -> None:
    script = f"""
refuse() {{ printf 'Field "%s" is not a valid field to query.\\n\\n' "$1"; exit 2; }}
case "$*" in
*compute-apps*) exit 6;;
*clocks_throttle_reasons.active*) refuse clocks_throttle_reasons.active;;
*memory.reserved*) refuse memory.reserved;;
esac
echo '{ROW.replace(" 500,", "")}'
exec sleep 100
"""
    collector = start(None, script=script)
    for _ in range(4):
        tick = collector.tick(slow=True)
    gpu = tick.gpu
    assert gpu["name"] == 'NVIDIA, the "best" GPU'
    assert gpu["throttle"] == ["SwPowerCap"]
    assert gpu["memory_used"] == 40 * GIB
    assert tick.reason("memory_reserved") == "this nvidia-smi does not know it"
    assert tick.reason("memory_busy") == "nvidia-smi says Not Supported"
    assert tick.reason("memory_temperature") == "nvidia-smi says ERR!"
    assert tick.reason("ecc_uncorrected") == "nvidia-smi says Unknown Error"
    assert tick.reason("holders") == "nvidia-smi --query-compute-apps ended with status 6"


@pytest.mark.parametrize(
    "script",
    [
        "exit 0",
        "head -c 3000000 /dev/zero; exit 1",
        "while :; do echo '0, x'; done | head -c 3000000",
        "printf '0, \\033[31m'; exit 1",
        "kill -9 $$",
    ],
)
def test_nonsense_is_no_gpu_and_no_crash(start: Start, script: str) -> None:
    collector = start(None, script=script)
    for _ in range(3):
        tick = collector.tick()
        assert "gpus" not in tick.doc
        assert tick.unavailable["/gpus"]
        assert len(tick.unavailable["/gpus"]) <= 512


def test_a_line_is_taken_only_once_it_is_whole(start: Start) -> None:
    begun, rest = ROW[:40], ROW[40:]
    script = f"printf '%s' '{begun}'; sleep 1; printf '%s\\n' '{rest}'; exec sleep 100"
    collector = start(None, script=script)
    assert "gpus" not in collector.tick().doc
    assert collector.tick(wait=1.2).gpu["power_w"] == 55.25


def test_the_loop_ends_with_the_collector(start: Start, tmp_path: Path) -> None:
    collector = start(None, script=f"echo $$ >'{tmp_path}/pid'; echo '{ROW}'; exec sleep 100")
    collector.tick()
    pid = int((tmp_path / "pid").read_text())
    assert collector.close() == 0
    assert not Path(f"/proc/{pid}").exists()


def test_a_library_that_becomes_usable_is_used(start: Start, tmp_path: Path) -> None:
    collector = start(machines.NO_GPUS)
    collector.tick()
    collector.set(machines.ONE_H100)
    library = tmp_path / "root/usr/lib64/libnvidia-ml.so.1"
    library.unlink()
    library.symlink_to(tmp_path / "nvml/libnvidia-ml.so.1")
    collector.tick(after=9)
    assert collector.tick().doc["driver"]["source"] == "nvml"
