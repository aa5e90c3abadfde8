from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lab.nvml import Driver, NoCompilerError, Scenario, build, machines
from tests.lab.nvml.scenario import (
    ADA,
    DRAM_BW_UTIL,
    DRIVER_NOT_LOADED,
    GIB,
    GPU_IDLE,
    GPU_IS_LOST,
    LIBRARY_MISMATCH,
    NO_PERMISSION,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    SM_UTIL,
    SW_POWER_CAP,
    UNKNOWN,
)
from tests.remote_scripts.gpu_lab import Collector

Start = Callable[..., Collector]
GPM_GAP = 0.12
"""Real seconds between two ticks that shall both have GPM figures."""
WIRE = {
    "index",
    "name",
    "state",
    "arch",
    "memory_total",
    "power_limit_w",
    "max_memory_clock_mhz",
    "bus_width_bits",
    "utilization",
    "memory_busy",
    "memory_used",
    "memory_free",
    "memory_reserved",
    "temperature",
    "memory_temperature",
    "power_w",
    "energy_j",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "dram_percent",
    "dram_source",
    "sm_percent",
    "tensor_percent",
    "pcie_rx_mib_s",
    "pcie_tx_mib_s",
    "ecc_uncorrected",
    "remapped_pending",
    "remapped_failure",
    "holders",
}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Collector] = []

    def begin(scenario: Scenario, driver: Driver = Driver.R580, **options: Any) -> Collector:
        try:
            folder = build(tmp_path / "nvml", driver)
        except NoCompilerError as error:
            pytest.skip(str(error))
        collector = Collector(folder, scenario, **options)
        running.append(collector)
        return collector

    yield begin
    for collector in running:
        collector.close()


def test_every_figure_of_an_h100(start: Start) -> None:
    collector = start(machines.ONE_H100)
    first = collector.tick(slow=True)
    assert set(first.gpu) == WIRE - {
        "dram_percent",
        "dram_source",
        "sm_percent",
        "tensor_percent",
        "pcie_rx_mib_s",
        "pcie_tx_mib_s",
    }
    assert first.reason("dram_percent") == "the first figure needs two samples"
    tick = collector.tick(wait=GPM_GAP)
    card = machines.h100()
    assert tick.doc["driver"]["source"] == "nvml"
    assert tick.doc["driver"]["version"] == "580.95.05"
    assert tick.doc["driver"]["cuda"] == "13.0"
    assert set(tick.gpu) == WIRE
    assert list(tick.gpus) == [card.uuid]
    assert not [pointer for pointer in tick.unavailable if pointer.startswith("/gpus")]
    gpu = tick.gpu
    assert gpu["state"] == "ok"
    assert gpu["arch"] == "Hopper"
    assert gpu["power_w"] == 512.34
    assert gpu["power_limit_w"] == 700
    assert gpu["memory_used"] == 41 * GIB
    assert gpu["memory_total"] == gpu["memory_used"] + gpu["memory_free"] + gpu["memory_reserved"]
    assert (gpu["utilization"], gpu["memory_busy"]) == (97, 55)
    assert (gpu["temperature"], gpu["memory_temperature"]) == (61, 70)
    assert gpu["energy_j"] >= 9_000_000
    assert (gpu["dram_percent"], gpu["dram_source"]) == (62.5, "gpm")
    assert (gpu["sm_percent"], gpu["tensor_percent"]) == (91.25, 48.5)
    assert (gpu["pcie_tx_mib_s"], gpu["pcie_rx_mib_s"]) == (1200.5, 800.25)
    assert gpu["max_memory_clock_mhz"] * 2 * gpu["bus_width_bits"] / 8 / 1000 == pytest.approx(3352.3, abs=0.1)


def test_samples_closer_than_gpm_allows_repeat_the_last_figure(start: Start) -> None:
    collector = start(machines.ONE_H100)
    collector.tick()
    assert collector.tick(wait=GPM_GAP).gpu["dram_percent"] == 62.5
    collector.set(machines.ONE_H100.change(0, gpm={DRAM_BW_UTIL: 10.0}))
    assert collector.tick().gpu["dram_percent"] == 62.5
    tick = collector.tick(wait=GPM_GAP)
    assert tick.gpu["dram_percent"] == 10.0
    assert "sm_percent" not in tick.gpu
    assert tick.reason("sm_percent") == "GPM: the GPU does not support it"


def test_nan_and_nonsense_of_gpm_are_no_figures(start: Start) -> None:
    collector = start(machines.NAN)
    collector.tick()
    tick = collector.tick(wait=GPM_GAP)
    assert tick.gpu["tensor_percent"] == 48.5
    assert not {"dram_percent", "dram_source", "sm_percent"} & set(tick.gpu)
    assert tick.reason("dram_percent") == "GPM has no data for the last interval"
    collector.set(machines.ONE_H100.change(0, gpm={SM_UTIL: 140.0, DRAM_BW_UTIL: -1.0}))
    tick = collector.tick(wait=GPM_GAP)
    assert tick.reason("sm_percent") == "GPM says 140"
    assert tick.reason("dram_percent") == "GPM says -1"
    collector.set(machines.ONE_H100)
    assert collector.tick(wait=GPM_GAP).gpu["dram_percent"] == 62.5


def test_gpm_refused_for_want_of_permission_says_so(start: Start) -> None:
    collector = start(machines.NO_GPM_PERMISSION)
    tick = collector.tick()
    assert "Insufficient Permissions" in tick.reason("dram_percent")
    assert "utilization" in tick.gpu


def test_the_live_probe_outranks_the_support_call(start: Start) -> None:
    collector = start(machines.ONE_H100.change(0, errors={"nvmlGpmSampleGet": NOT_SUPPORTED}))
    assert "does not support GPM" in collector.tick().reason("dram_percent")


def test_a_vgpu_guest_has_no_gpm(start: Start) -> None:
    tick = start(machines.ONE_H100.change(0, virtualization=2)).tick()
    assert "vGPU guest" in tick.reason("dram_percent")
    assert "utilization" in tick.gpu


def test_gpm_switched_off_is_left_alone(start: Start) -> None:
    tick = start(machines.ONE_H100, gpm=False).tick()
    assert tick.reason("sm_percent") == "GPM is switched off in the request"


def test_an_l40s_has_memory_busy_and_says_why_no_throughput(start: Start) -> None:
    collector = start(machines.ONE_L40S)
    collector.tick(slow=True)
    tick = collector.tick(wait=GPM_GAP)
    assert tick.gpu["memory_busy"] == 38
    assert not {"dram_percent", "dram_source", "memory_temperature"} & set(tick.gpu)
    assert tick.reason("dram_percent") == (
        "the GPU does not support GPM (Hopper or newer does), and no DCGM exporter answers on port 9400"
    )
    assert tick.reason("memory_temperature") == "the GPU does not support it"
    assert tick.gpu["arch"] == "Ada"
    # Every figure of the wire is there or has its reason.
    told = {pointer.rpartition("/")[2] for pointer in tick.unavailable if pointer.startswith("/gpus")}
    assert set(tick.gpu) | told >= WIRE - {"dram_source"}


@pytest.mark.parametrize("driver", [Driver.R470, Driver.R535])
def test_older_drivers_are_read_by_their_own_functions(start: Start, driver: Driver) -> None:
    pid = os.getpid()
    scenario = machines.ONE_H100.change(0, processes={pid: 5 * GIB, 1: 2 * GIB}, event_reasons=SW_POWER_CAP)
    collector = start(scenario, driver)
    collector.tick(slow=True)
    gpu = collector.tick(slow=True, wait=GPM_GAP).gpu
    assert gpu["temperature"] == 61
    assert gpu["throttle"] == ["SwPowerCap"]
    assert gpu["memory_total"] == 80 * GIB
    assert [(holder["pid"], holder["memory"]) for holder in gpu["holders"]] == sorted(
        [(1, 2 * GIB), (pid, 5 * GIB)]
    )
    assert ("dram_percent" in gpu) is (driver is Driver.R535)


def test_without_the_newer_memory_call_reserved_is_not_guessed(start: Start) -> None:
    tick = start(machines.ONE_H100, Driver.R470).tick()
    assert "memory_reserved" not in tick.gpu
    assert "older than 510" in tick.reason("memory_reserved")
    assert "525 or newer" in tick.reason("dram_percent")


def test_holders_of_memory_are_told(start: Start) -> None:
    pid = os.getpid()
    scenario = machines.ONE_H100.change(0, processes={pid: 3 * GIB, 4_000_000: None}, graphics_processes={pid: GIB})
    collector = start(scenario)
    tick = collector.tick(slow=True, servers={pid: "triton"})
    mine, gone = tick.gpu["holders"]
    assert (mine["pid"], mine["memory"], mine["server"]) == (pid, 3 * GIB, "triton")
    assert mine["process"]
    assert (gone["pid"], gone["orphan"]) == (4_000_000, True)
    assert tick.reason("holders/1/memory") == "the driver does not say how much"
    assert collector.tick().gpu["holders"] == tick.gpu["holders"]


def test_a_process_list_of_a_broken_layout_is_not_believed(start: Start) -> None:
    tick = start(machines.ONE_H100.change(0, processes={4_294_000_000: GIB})).tick(slow=True)
    assert "holders" not in tick.gpu
    assert "update the driver" in tick.reason("holders")


def test_throttling_is_told_in_nvmls_words_and_idling_is_none(start: Start) -> None:
    collector = start(machines.HOT)
    assert collector.tick().gpu["throttle"] == ["HwSlowdown", "SwThermalSlowdown", "HwThermalSlowdown"]
    collector.set(machines.HOT.change(0, event_reasons=GPU_IDLE))
    assert "throttle" not in collector.tick().gpu


@pytest.mark.parametrize(("code", "words"), [(GPU_IS_LOST, "GPU is lost"), (RESET_REQUIRED, "requires reset")])
def test_a_lost_gpu_is_lost_alone_and_comes_back(start: Start, code: int, words: str) -> None:
    collector = start(machines.EIGHT_H100)
    collector.tick(slow=True)
    fourth = machines.h100(3).uuid
    assert isinstance(fourth, str)
    collector.set(machines.EIGHT_H100.change(3, errors={"*": code}))
    tick = collector.tick(wait=GPM_GAP)
    assert list(tick.gpus)[3] == fourth
    assert tick.gpus[fourth]["state"] == "lost"
    assert words in tick.gpus[fourth]["reason"]
    assert tick.gpus[fourth]["name"] == "NVIDIA H100 80GB HBM3"
    assert words in tick.unavailable[f"/gpus/{fourth}"]
    assert "temperature" not in tick.gpus[fourth]
    assert [gpu["state"] for gpu in tick.gpus.values()].count("ok") == 7
    assert all("dram_percent" in gpu for uuid, gpu in tick.gpus.items() if uuid != fourth)
    collector.set(machines.EIGHT_H100)
    assert collector.tick(after=1).gpus[fourth]["state"] == "lost"
    back = collector.tick(after=5)
    assert back.gpus[fourth]["state"] == "ok"
    assert back.gpus[fourth]["temperature"] == 64
    assert back.reason("dram_percent", fourth) == "the first figure needs two samples"
    assert "dram_percent" in collector.tick(wait=GPM_GAP).gpus[fourth]


def test_a_gpu_that_is_lost_from_the_start_is_listed(start: Start) -> None:
    collector = start(machines.LOST)
    tick = collector.tick()
    assert list(tick.gpus)[3] == "index-3"
    assert tick.gpus["index-3"]["state"] == "lost"
    collector.set(machines.EIGHT_H100)
    back = collector.tick(after=6)
    assert list(back.gpus) == [machines.h100(number).uuid for number in range(8)]


def test_a_gpu_that_stays_lost_has_nvml_started_anew(start: Start) -> None:
    collector = start(machines.EIGHT_H100)
    collector.tick()
    collector.set(machines.LOST)
    fourth = machines.h100(3).uuid
    assert isinstance(fourth, str)
    for _ in range(30):
        tick = collector.tick(after=6)
    assert tick.gpus[fourth]["state"] == "lost"
    assert len(tick.gpus) == 8
    collector.set(machines.EIGHT_H100)
    assert collector.tick(after=6).gpus[fourth]["state"] == "ok"


def test_a_gpu_more_is_found(start: Start) -> None:
    collector = start(Scenario((machines.h100(0),)))
    assert len(collector.tick(slow=True).gpus) == 1
    collector.set(Scenario((machines.h100(0), machines.h100(1))))
    assert len(collector.tick(slow=True).gpus) == 2
    collector.set(Scenario())
    assert collector.tick(slow=True).gpus == {}


def test_mig_devices_stand_beside_their_gpu(start: Start) -> None:
    pid = os.getpid()
    whole = machines.h100_with_mig()
    scenario = Scenario((replace(whole, migs=(replace(whole.migs[0], processes={pid: GIB}), whole.migs[1])),))
    collector = start(scenario)
    collector.tick(slow=True)
    tick = collector.tick(wait=GPM_GAP)
    parent, first, second = tick.gpus.values()
    assert parent["mig"] is True
    assert "utilization" not in parent
    assert "MIG" in tick.reason("utilization")
    assert parent["temperature"] == 61
    assert parent["holders"] == []
    assert first["parent"] == second["parent"] == whole.uuid
    assert first["name"] == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert (first["dram_percent"], second["dram_percent"]) == (30.0, 31.0)
    assert (first["memory_used"], second["memory_used"]) == (10 * GIB, 20 * GIB)
    assert [holder["pid"] for holder in first["holders"]] == [pid]
    assert second["holders"] == []
    uuid = whole.migs[1].uuid
    assert "MIG" in tick.reason("temperature", uuid)
    assert "MIG" in tick.reason("utilization", uuid)
    assert "PCIe" in tick.reason("pcie_rx_mib_s", uuid)


def test_a_mig_layout_that_changes_is_followed(start: Start) -> None:
    collector = start(machines.MIG_ON)
    collector.tick(slow=True)
    whole = machines.h100_with_mig()
    collector.set(Scenario((replace(whole, migs=whole.migs[1:]),)))
    assert list(collector.tick(slow=True).gpus) == [whole.uuid, whole.migs[1].uuid]
    collector.set(machines.ONE_H100)
    tick = collector.tick(slow=True)
    assert list(tick.gpus) == [machines.h100().uuid]
    assert tick.gpu["utilization"] == 97
    assert "mig" not in tick.gpu


def test_a_gpu_without_memory_of_its_own_shows_the_hosts(start: Start) -> None:
    bare = {"memory_total": None, "memory_reserved": None, "memory_used": None}
    tick = start(machines.ONE_H100.change(0, **bare)).tick()
    assert tick.gpu["memory_shared"] is True
    assert tick.gpu["memory_total"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert tick.gpu["memory_used"] + tick.gpu["memory_free"] == tick.gpu["memory_total"]
    assert "shares the host's" in tick.reason("memory_reserved")


def test_figures_that_nvml_refuses_are_left_out_one_by_one(start: Start) -> None:
    scenario = machines.ONE_H100.change(
        0, errors={"nvmlDeviceGetPowerUsage": NO_PERMISSION, "nvmlDeviceGetTotalEccErrors": NOT_SUPPORTED}
    )
    collector = start(scenario)
    tick = collector.tick(slow=True)
    assert not {"power_w", "ecc_uncorrected"} & set(tick.gpu)
    assert "Insufficient Permissions" in tick.reason("power_w")
    assert tick.reason("ecc_uncorrected") == "the GPU does not support it"
    assert tick.gpu["temperature"] == 61
    collector.set(machines.ONE_H100)
    tick = collector.tick(slow=True)
    # A permission may be given; what is not supported is not asked again.
    assert tick.gpu["power_w"] == 512.34
    assert "ecc_uncorrected" not in tick.gpu


def test_a_driver_and_library_of_two_versions(start: Start, tmp_path: Path) -> None:
    (tmp_path / "root/proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "root/proc/driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 17 22:55:48 UTC 2024\n"
        "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
    )
    smi = tmp_path / "bin/nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    smi.chmod(0o755)
    collector = start(machines.MISMATCH, root=tmp_path / "root", path=[str(smi.parent)])
    tick = collector.tick()
    assert tick.doc["driver"]["kernel_version"] == "535.161.08"
    assert "gpus" not in tick.doc
    assert "driver/library version mismatch" in tick.unavailable["/gpus"]
    assert "535.161.08" in tick.unavailable["/gpus"]
    assert not (tmp_path / "asked").exists()
    collector.set(machines.ONE_H100)
    assert "gpus" not in collector.tick(after=1).doc
    assert collector.tick(after=8).gpu["state"] == "ok"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (DRIVER_NOT_LOADED, "not loaded"),
        (UNKNOWN, "restart the container"),
        (LIBRARY_MISMATCH, "mismatch"),
        (77, "77"),
    ],
)
def test_nvml_that_does_not_start_says_why_and_is_tried_again(start: Start, code: int, words: str) -> None:
    collector = start(replace(machines.ONE_H100, errors={"nvmlInitWithFlags": code}))
    tick = collector.tick()
    assert words in tick.unavailable["/gpus"]
    assert "gpus" not in tick.doc
    collector.set(machines.ONE_H100)
    assert collector.tick(after=9).gpu["utilization"] == 97


def test_nvml_that_loses_its_state_is_started_again(start: Start) -> None:
    collector = start(machines.ONE_H100)
    collector.tick()
    collector.set(machines.ONE_H100.change(0, errors={"nvmlDeviceGetClockInfo": 1}))
    tick = collector.tick()
    assert "gpus" not in tick.doc
    assert "lost its state" in tick.unavailable["/gpus"]
    collector.set(machines.ONE_H100)
    assert collector.tick(after=9).gpu["sm_clock_mhz"] == 1755


def test_a_driver_without_gpus_is_an_empty_list(start: Start) -> None:
    tick = start(machines.NO_GPUS).tick()
    assert tick.gpus == {}
    assert "/gpus" not in tick.unavailable


def test_without_library_and_nvidia_smi_there_is_no_driver(start: Start, tmp_path: Path) -> None:
    collector = start(machines.ONE_H100, library_path=tmp_path, root=tmp_path)
    tick = collector.tick()
    assert tick.doc == {}
    assert "not installed" in tick.unavailable["/driver"]
    assert "not installed" in tick.unavailable["/gpus"]


def test_a_driver_that_hangs_holds_no_tick_up(start: Start) -> None:
    collector = start(machines.ONE_H100, patience=0.3)
    collector.tick(slow=True)
    collector.set(machines.ONE_H100.change(0, delays_ms={"nvmlDeviceGetUtilizationRates": 5000}))
    tick = collector.tick()
    assert tick.gpu["state"] == "ok", "the last answer stands in for a late one"
    late = collector.tick(wait=3.2)
    assert max(tick.took, late.took) < 2
    assert late.gpu["state"] == "error"
    assert "has not answered for" in late.gpu["reason"]
    assert late.gpu["name"] == "NVIDIA H100 80GB HBM3"
    assert "temperature" not in late.gpu
    collector.set(machines.ONE_H100)
    back = collector.tick(wait=3)
    assert back.gpu["state"] == "ok"


def test_a_driver_that_starts_slowly_does_not_hold_the_first_tick_up(start: Start) -> None:
    collector = start(replace(machines.ONE_H100, delays_ms={"nvmlInitWithFlags": 1500}), patience=0.2)
    first = collector.tick()
    assert first.took < 1.4
    assert first.doc == {}
    assert "has not answered yet" in first.unavailable["/gpus"]
    assert collector.tick(wait=2).gpu["state"] == "ok"


def test_hostile_names_cross_as_they_are(start: Start) -> None:
    tick = start(machines.HOSTILE_NAMES).tick()
    names = [gpu["name"] for gpu in tick.gpus.values()]
    assert len(names) == 7
    assert names[1] == "NVIDIA"
    assert names[2] == "NVIDIA \ufffd\ufffd\ufffd H100"
    assert all(len(name) <= 512 for name in names)


def test_a_hostile_uuid_makes_no_hostile_key(start: Start) -> None:
    scenario = Scenario((replace(machines.h100(), uuid=b"GPU-\x1b]0;x\x07/~\xff"),))
    collector = start(scenario)
    tick = collector.tick(slow=True)
    (key,) = tick.gpus
    assert key.isprintable()
    assert "~1~0" in next(pointer for pointer in tick.unavailable if pointer.startswith("/gpus/"))
    collector.set(scenario.change(0, errors={"*": GPU_IS_LOST}))
    assert collector.tick().gpus[key]["state"] == "lost"
    collector.set(scenario)
    collector.tick(after=6)
    for _ in range(12):
        tick = collector.tick(after=6)
    assert tick.gpus[key]["state"] == "ok"


def test_more_gpus_than_travel_are_counted(start: Start) -> None:
    whole = machines.h100_with_mig()
    crowd = tuple(
        replace(
            whole,
            uuid=f"GPU-{number}",
            migs=tuple(replace(mig, uuid=f"MIG-{number}-{place}") for place, mig in enumerate(whole.migs)),
        )
        for number in range(30)
    )
    tick = start(Scenario(crowd)).tick()
    assert len(tick.gpus) == 64
    assert tick.unavailable["/gpus/beyond 64"] == "26 more are left out"


def test_memory_that_does_not_add_up_is_said() -> None:
    import pynvml

    from remote_scripts.gpu.nvml_memory import memory_query

    class Library:
        bindings = pynvml

        def function(self, name: str) -> Any:
            return self.fill if name.endswith("_v2") else None

        def fill(self, _: object, place: Any) -> int:
            memory = place._obj
            memory.total, memory.used, memory.free, memory.reserved = 100 * GIB, 40 * GIB, 50 * GIB, 5 * GIB
            return 0

    library: Any = Library()
    figures: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    memory_query(library, None).ask(library, figures, reasons)
    assert figures == {"memory_total": 100 * GIB, "memory_used": 40 * GIB, "memory_free": 50 * GIB}
    assert reasons == {"memory_reserved": "used, free and reserved add up to 95 % of the total"}


def test_a_collector_of_eight_gpus_is_small_and_does_not_grow(start: Start) -> None:
    collector = start(machines.EIGHT_H100)
    collector.tick(slow=True)
    first = collector.repeat(100)
    last = collector.repeat(1000)
    assert last["peak_kib"] < 30 << 10
    assert last["peak_kib"] - first["peak_kib"] < 512


CODES = (1, 2, 3, 4, 6, 7, 9, 12, 13, 14, 15, 16, 17, 18, 21, 25, 26, 27, 28, 29, 77, 999)
FUNCTIONS = (
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetName",
    "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetMemoryBusWidth",
    "nvmlDeviceGetMaxClockInfo",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMigDeviceHandleByIndex",
    "nvmlDeviceGetGpuInstanceId",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetRemappedRows",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetVirtualizationMode",
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleGet",
    "nvmlGpmMigSampleGet",
    "nvmlGpmMetricsGet",
    "nvmlGpmSampleAlloc",
    "nvmlDeviceGetCount_v2",
    "nvmlSystemGetDriverVersion",
    "nvmlInitWithFlags",
    "nvmlShutdown",
)


@pytest.mark.parametrize("where", ["everywhere", "one GPU"])
def test_whatever_fails_and_however_the_stream_goes_on_and_recovers(start: Start, where: str) -> None:
    good = Scenario((machines.h100(0), replace(machines.h100_with_mig(), uuid="GPU-mig")))
    collector = start(good)
    collector.tick(slow=True)
    for code in CODES:
        for function in FUNCTIONS:
            errors = {function: code}
            collector.set(replace(good, errors=errors) if where == "everywhere" else good.change(1, errors=errors))
            for slow in (True, False):
                tick = collector.tick(slow=slow, after=1)
                bad = [reason for reason in tick.unavailable.values() if "failed here" in reason or not reason]
                assert not bad, (function, code, bad)
                if where == "one GPU" and function != "nvmlGpmMetricsGet" and code != 1:
                    assert tick.gpus[str(machines.h100(0).uuid)]["temperature"] == 61, (function, code)
        collector.set(good)
        for _ in range(3):
            tick = collector.tick(slow=True, after=1000)
        assert [gpu["state"] for gpu in tick.gpus.values()] == ["ok"] * 4, code


def test_a_hanging_driver_does_not_hold_the_end_up(start: Start) -> None:
    collector = start(machines.ONE_H100, patience=0.2)
    collector.tick()
    collector.set(machines.ONE_H100.change(0, delays_ms={"nvmlDeviceGetUtilizationRates": 60000}))
    collector.tick()
    assert collector.close() == 0


def test_nvml_is_shut_down_at_the_end(start: Start) -> None:
    collector = start(machines.EIGHT_H100)
    collector.tick()
    assert collector.close() == 0


def test_an_unused_collector_closes(tmp_path: Path) -> None:
    code = (
        "import io; from remote_scripts.call import Call; from remote_scripts.gpu.collector import GpuCollector\n"
    )
    code += "import sys; GpuCollector(Call({}, io.BytesIO())).close(); assert 'pynvml' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=20, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_constants_are_nvmls_own() -> None:
    import pynvml

    from remote_scripts.gpu import gpm, nvml, nvml_device, nvml_processes
    from remote_scripts.gpu.nvml_device import architecture

    assert dict(gpm.PERCENTS + gpm.RATES).keys() == {
        pynvml.NVML_GPM_METRIC_SM_UTIL,
        pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
        pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
        pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC,
        pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC,
    }
    assert dict(gpm.RATES)[pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC] == "pcie_tx_mib_s"
    assert nvml.GPU_IS_LOST == pynvml.NVML_ERROR_GPU_IS_LOST
    assert nvml.MISMATCH == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    assert nvml_device.FIELD_MEMORY_TEMPERATURE == pynvml.NVML_FI_DEV_MEMORY_TEMP
    assert nvml_device.FIELD_ENERGY == pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION
    assert pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value == nvml_processes.NOT_AVAILABLE
    for bit, name in nvml_device.THROTTLE:
        known = getattr(pynvml, f"nvmlClocksEventReason{name}", None)
        assert known is None or known == bit
    assert architecture(pynvml, ADA) == "Ada"
    assert architecture(pynvml, 99) == "99"


def test_under_another_root_this_machines_library_is_not_that_droplets(start: Start, tmp_path: Path) -> None:
    folder = start(machines.ONE_H100).folder
    (tmp_path / "root").mkdir()
    elsewhere = start(machines.ONE_H100, root=tmp_path / "root", library_path=folder)
    assert elsewhere.tick().gpu["state"] == "ok"
    (tmp_path / "root/usr/lib64/libnvidia-ml.so.1").unlink()
    none = Collector(folder, machines.ONE_H100, root=tmp_path / "empty")
    (tmp_path / "empty/usr/lib64/libnvidia-ml.so.1").unlink()
    try:
        assert "not installed" in none.tick().unavailable["/gpus"], "though the loader would find one"
    finally:
        none.close()
