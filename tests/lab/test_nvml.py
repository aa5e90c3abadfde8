"""The stub under the real pynvml, in processes of their own: the library is found when a process starts."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab import nvml
from tests.lab.cc import NoCompilerError
from tests.lab.machine import Machine
from tests.lab.nvml import machines
from tests.lab.nvml.scenario import (
    DRAM_BW_UTIL,
    GPU_IS_LOST,
    HW_SLOWDOWN,
    HW_THERMAL,
    NO_PERMISSION,
    NOT_SUPPORTED,
    SW_THERMAL,
    UNKNOWN,
    Scenario,
)

PRELUDE = """
import json, sys, time
from pynvml import *
def out(value): print(json.dumps(value), flush=True)
def code(call, *args):
    try: call(*args)
    except NVMLError as error: return error.value
    return 0
"""
WITH_GPU = PRELUDE + "nvmlInit(); h = nvmlDeviceGetHandleByIndex(0)\n"
GPM = """
def gpm(handle, metric=10, gap=0.15):
    a, b = nvmlGpmSampleAlloc(), nvmlGpmSampleAlloc()
    nvmlGpmSampleGet(handle, a); time.sleep(gap); nvmlGpmSampleGet(handle, b)
    g = c_nvmlGpmMetricsGet_t(); g.version = 1; g.sample1 = a; g.sample2 = b
    g.numMetrics = 1; g.metrics[0].metricId = metric
    nvmlGpmMetricsGet(g)
    return [g.metrics[0].nvmlReturn, g.metrics[0].value]
"""


pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the stub is compiled, and there is no cc")


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml.build(tmp_path_factory.mktemp("nvml"))


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": str(folder)}


def ask(folder: Path, scenario: Scenario, script: str) -> Any:
    scenario.write(folder / nvml.SCENARIO)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return json.loads(done.stdout)


def smi(folder: Path, scenario: Scenario, *arguments: str) -> subprocess.CompletedProcess[str]:
    scenario.write(folder / nvml.SCENARIO)
    command = [str(folder / nvml.SMI), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def query(folder: Path, scenario: Scenario, columns: str) -> list[list[str]]:
    done = smi(folder, scenario, f"--query-gpu={columns}", "--format=csv,noheader,nounits")
    assert done.returncode == 0
    return [line.split(", ") for line in done.stdout.splitlines()]


def test_an_h100_has_everything(stub: Path) -> None:
    script = """
m = nvmlDeviceGetMemoryInfo(h, nvmlMemory_v2); v1 = nvmlDeviceGetMemoryInfo(h); u = nvmlDeviceGetUtilizationRates(h)
f = nvmlDeviceGetFieldValues(h, [82, 83, 186, 9999])
out(dict(driver=nvmlSystemGetDriverVersion(), nvml=nvmlSystemGetNVMLVersion(),
    cuda=nvmlSystemGetCudaDriverVersion(),
    count=nvmlDeviceGetCount(), name=nvmlDeviceGetName(h), uuid=nvmlDeviceGetUUID(h),
    pci=nvmlDeviceGetPciInfo(h).busId, arch=nvmlDeviceGetArchitecture(h),
    memory=[m.total, m.reserved, m.used, m.free],
    v1_used=v1.used, width=nvmlDeviceGetMemoryBusWidth(h), clock=nvmlDeviceGetMaxClockInfo(h, 2),
    sm=nvmlDeviceGetClockInfo(h, 1), use=[u.gpu, u.memory], heat=nvmlDeviceGetTemperature(h, 0),
    heat_v=nvmlDeviceGetTemperatureV(h, 0), power=nvmlDeviceGetPowerUsage(h),
    limit=nvmlDeviceGetEnforcedPowerLimit(h),
    energy=nvmlDeviceGetTotalEnergyConsumption(h), events=nvmlDeviceGetCurrentClocksEventReasons(h),
    ecc=nvmlDeviceGetTotalEccErrors(h, 1, 0), rows=nvmlDeviceGetRemappedRows(h), mig=nvmlDeviceGetMigMode(h),
    virtual=nvmlDeviceGetVirtualizationMode(h),
    same=nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID(h))),
    memory_heat=[f[0].nvmlReturn, f[0].value.uiVal], field_energy=f[1].value.ullVal, field_power=f[2].value.uiVal,
    unknown_field=f[3].nvmlReturn, gpm=nvmlGpmQueryDeviceSupport(h).isSupportedDevice, dram=gpm(h)))
"""
    told = ask(stub, machines.ONE_H100, WITH_GPU + GPM + script)
    gpu = machines.ONE_H100.gpus[0]
    assert gpu.memory_total is not None
    assert gpu.memory_used is not None
    assert gpu.memory_reserved is not None
    assert gpu.energy_mj is not None
    assert told.pop("energy") >= gpu.energy_mj
    assert told.pop("field_energy") >= gpu.energy_mj
    total, reserved, used = gpu.memory_total, gpu.memory_reserved, gpu.memory_used
    assert told == {
        "driver": "580.95.05",
        "nvml": "13.580.95.05",
        "cuda": 13000,
        "count": 1,
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": gpu.uuid,
        "pci": "00000000:19:00.0",
        "arch": 9,
        "memory": [total, reserved, used, total - reserved - used],
        "v1_used": used + reserved,
        "width": 5120,
        "clock": 2619,
        "sm": 1755,
        "use": [97, 55],
        "heat": 61,
        "heat_v": 61,
        "power": 512_340,
        "limit": 700_000,
        "events": 0,
        "ecc": 0,
        "rows": [0, 0, 0, 0],
        "mig": [0, 0],
        "virtual": 0,
        "same": 0,
        "memory_heat": [0, 70],
        "field_power": 512_340,
        "unknown_field": NOT_SUPPORTED,
        "gpm": 1,
        "dram": [0, 62.5],
    }
    assert told["clock"] * 2 * told["width"] / 8 / 1000 == pytest.approx(3352, abs=1)


def test_gpm_samples_too_close_give_no_number(stub: Path) -> None:
    returned, value = ask(stub, machines.ONE_H100, WITH_GPU + GPM + "out(gpm(h, gap=0.02))")
    assert returned == 0
    assert math.isnan(value)


def test_gpm_refuses_samples_in_the_wrong_order_and_names_what_it_lacks(stub: Path) -> None:
    script = """
a, b = nvmlGpmSampleAlloc(), nvmlGpmSampleAlloc()
nvmlGpmSampleGet(h, a); time.sleep(0.15); nvmlGpmSampleGet(h, b)
g = c_nvmlGpmMetricsGet_t(); g.version = 1; g.sample1 = b; g.sample2 = a
g.numMetrics = 1; g.metrics[0].metricId = 10
wrong = code(nvmlGpmMetricsGet, g)
nvmlGpmSampleFree(a); nvmlGpmSampleFree(b)
out([wrong, gpm(h, 4)[0]])
"""
    assert ask(stub, machines.ONE_H100, WITH_GPU + GPM + script) == [2, NOT_SUPPORTED]


def test_a_scenario_can_hold_nan(stub: Path) -> None:
    returned, value = ask(stub, machines.NAN, WITH_GPU + GPM + "out(gpm(h))")
    assert returned == 0
    assert math.isnan(value)


def test_an_l40s_has_neither_gpm_nor_mig_nor_memory_temperature(stub: Path) -> None:
    script = """
a = nvmlGpmSampleAlloc()
out([nvmlGpmQueryDeviceSupport(h).isSupportedDevice, code(nvmlGpmSampleGet, h, a), code(nvmlDeviceGetMigMode, h),
     nvmlDeviceGetFieldValues(h, [82])[0].nvmlReturn])
"""
    told = ask(stub, machines.ONE_L40S, WITH_GPU + script)
    assert told == [0, NOT_SUPPORTED, NOT_SUPPORTED, NOT_SUPPORTED]


def test_eight_gpus_are_told_apart(stub: Path) -> None:
    script = "nvmlInit(); hs = [nvmlDeviceGetHandleByIndex(i) for i in range(nvmlDeviceGetCount())]\n"
    script += "out([[nvmlDeviceGetUUID(h), nvmlDeviceGetTemperature(h, 0)] for h in hs])"
    told = ask(stub, machines.EIGHT_H100, PRELUDE + script)
    assert told == [[gpu.uuid, gpu.temperature] for gpu in machines.EIGHT_H100.gpus]
    assert len({uuid for uuid, _ in told}) == 8


def test_mig_devices_have_memory_and_gpm_and_no_utilisation(stub: Path) -> None:
    script = """
found = []
for i in range(nvmlDeviceGetMaxMigDeviceCount(h)):
    try: m = nvmlDeviceGetMigDeviceHandleByIndex(h, i)
    except NVMLError_NotFound: continue
    instance = nvmlDeviceGetGpuInstanceId(m)
    a, b = nvmlGpmSampleAlloc(), nvmlGpmSampleAlloc()
    nvmlGpmMigSampleGet(h, instance, a); time.sleep(0.15); nvmlGpmMigSampleGet(h, instance, b)
    g = c_nvmlGpmMetricsGet_t(); g.version = 1; g.sample1 = a; g.sample2 = b
    g.numMetrics = 1; g.metrics[0].metricId = 10
    nvmlGpmMetricsGet(g)
    found.append([nvmlDeviceGetUUID(m), nvmlDeviceGetMemoryInfo(m, nvmlMemory_v2).used, g.metrics[0].value,
        code(nvmlDeviceGetUtilizationRates, m),
        nvmlDeviceGetIndex(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(m))])
out([nvmlDeviceGetMigMode(h), code(nvmlDeviceGetUtilizationRates, h), found])
"""
    mode, refused, found = ask(stub, machines.MIG_ON, WITH_GPU + script)
    assert mode == [1, 1]
    assert refused == NOT_SUPPORTED
    assert found == [
        [mig.uuid, mig.memory_used, mig.gpm[DRAM_BW_UTIL], NOT_SUPPORTED, 0] for mig in machines.MIG_ON.gpus[0].migs
    ]


def test_a_lost_gpu_fails_alone(stub: Path) -> None:
    script = "nvmlInit(); out([code(nvmlDeviceGetHandleByIndex, i) for i in range(8)])"
    assert ask(stub, machines.LOST, PRELUDE + script) == [0, 0, 0, GPU_IS_LOST, 0, 0, 0, 0]


def test_a_mismatch_and_a_missing_driver_fail_at_the_start(stub: Path) -> None:
    script = """
try: nvmlInit()
except Exception as error: out([type(error).__name__, getattr(error, "value", None), isinstance(error, NVMLError)])
"""
    assert ask(stub, machines.MISMATCH, PRELUDE + script) == ["NVMLError_LibRmVersionMismatch", 18, True]
    assert ask(stub, machines.NO_DRIVER, PRELUDE + script) == ["NVMLError_DriverNotLoaded", 9, True]


def test_without_the_library_there_is_no_library(tmp_path: Path) -> None:
    assert ask(tmp_path, machines.ONE_H100, PRELUDE + "out(code(nvmlInit))") == 12


def test_an_old_driver_lacks_functions_and_not_figures(tmp_path: Path) -> None:
    folder = nvml.build(tmp_path, nvml.Driver.R470)
    script = """
out([code(nvmlGpmQueryDeviceSupport, h), code(nvmlDeviceGetCurrentClocksEventReasons, h),
     code(nvmlDeviceGetMemoryInfo, h, nvmlMemory_v2), code(nvmlDeviceGetTemperatureV, h, 0),
     code(nvmlDeviceGetComputeRunningProcesses_v3, h), code(nvmlDeviceGetCurrentClocksThrottleReasons, h),
     nvmlDeviceGetTemperature(h, 0)])
"""
    assert ask(folder, machines.ONE_H100, WITH_GPU + script) == [13, 13, 13, 13, 13, 0, 61]


@pytest.mark.parametrize("driver", [nvml.Driver.R580, nvml.Driver.R535])
def test_holders_are_named_by_pid(tmp_path: Path, driver: nvml.Driver) -> None:
    folder = nvml.build(tmp_path, driver)
    scenario = machines.ONE_H100.change(0, processes={1234: 512_000_000, 77: None})
    if driver is nvml.Driver.R580:
        script = "out([[p.pid, p.usedGpuMemory] for p in nvmlDeviceGetComputeRunningProcesses(h)])"
    else:  # that branch's struct has one field more than the real pynvml's
        script = """
class P(Structure): _fields_ = c_nvmlProcessInfo_v2_t._fields_ + [("protected", c_ulonglong)]
n = c_uint(10); ps = (P * 10)(); nvmlLib = CDLL("libnvidia-ml.so.1")
nvmlLib.nvmlDeviceGetComputeRunningProcesses_v3(h, byref(n), ps)
out([[p.pid, None if p.usedGpuMemory == 2**64 - 1 else p.usedGpuMemory] for p in ps[:n.value]])
"""
        script = "from ctypes import *\n" + script
    assert ask(folder, scenario, WITH_GPU + script) == [[1234, 512_000_000], [77, None]]


def test_any_function_can_fail_alone(stub: Path) -> None:
    scenario = machines.ONE_H100.change(
        0, errors={"nvmlDeviceGetPowerUsage": NO_PERMISSION, "nvmlDeviceGetUtilizationRates": UNKNOWN}
    )
    script = """
out([code(nvmlDeviceGetPowerUsage, h), code(nvmlDeviceGetUtilizationRates, h), nvmlDeviceGetTemperature(h, 0)])
"""
    assert ask(stub, scenario, WITH_GPU + script) == [NO_PERMISSION, UNKNOWN, 61]
    told = ask(stub, machines.NO_GPM_PERMISSION, WITH_GPU + "out(code(nvmlGpmSampleGet, h, nvmlGpmSampleAlloc()))")
    assert told == NO_PERMISSION


def test_a_hot_gpu_says_why_it_is_slow(stub: Path) -> None:
    script = "out([nvmlDeviceGetTemperature(h, 0), nvmlDeviceGetCurrentClocksEventReasons(h)])"
    assert ask(stub, machines.HOT, WITH_GPU + script) == [91, HW_SLOWDOWN | SW_THERMAL | HW_THERMAL]


def test_a_slow_call_takes_its_time(stub: Path) -> None:
    script = "t = time.monotonic(); nvmlDeviceGetUtilizationRates(h); out(time.monotonic() - t)"
    assert ask(stub, machines.SLOW, WITH_GPU + script) >= 0.4


def test_hostile_names_arrive_as_they_are(stub: Path) -> None:
    script = """
lib = CDLL("libnvidia-ml.so.1"); nvmlInit(); found = []
for i in range(nvmlDeviceGetCount()):
    text = create_string_buffer(96)
    lib.nvmlDeviceGetName(nvmlDeviceGetHandleByIndex(i), text, 96)
    found.append(text.raw.hex())
out(found)
"""
    told = ask(stub, machines.HOSTILE_NAMES, "from ctypes import *\n" + PRELUDE + script)
    for hexadecimal, gpu in zip(told, machines.HOSTILE_NAMES.gpus, strict=True):
        assert isinstance(gpu.name, bytes)
        assert bytes.fromhex(hexadecimal).startswith(gpu.name[:96])
    assert bytes.fromhex(told[4]) == b"N" * 96  # cut, and without a NUL


def test_a_scenario_changes_under_a_running_process(stub: Path) -> None:
    machines.ONE_H100.write(stub / nvml.SCENARIO)
    script = WITH_GPU + "for line in sys.stdin: out([code(nvmlDeviceGetTemperature, h, 0), nvmlDeviceGetCount()])"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env=environment(stub),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told = []
        for scenario in (
            machines.ONE_H100,
            machines.ONE_H100.change(0, errors={"*": GPU_IS_LOST}),
            machines.ONE_H100,
        ):
            scenario.write(stub / nvml.SCENARIO)
            process.stdin.write("\n")
            process.stdin.flush()
            told.append(json.loads(process.stdout.readline()))
        process.stdin.close()
    assert told == [[0, 1], [GPU_IS_LOST, 1], [0, 1]]


def test_energy_grows_with_time(stub: Path) -> None:
    script = """
a = nvmlDeviceGetTotalEnergyConsumption(h); time.sleep(0.2); out(nvmlDeviceGetTotalEnergyConsumption(h) - a)
"""
    assert ask(stub, machines.ONE_H100, WITH_GPU + script) >= 0.2 * 512_340 - 1


def test_calls_are_cheap_enough_to_measure_a_sampler(stub: Path) -> None:
    script = (
        "t = time.process_time()\nfor _ in range(2000): nvmlDeviceGetPowerUsage(h)\nout(time.process_time() - t)"
    )
    assert ask(stub, machines.EIGHT_H100, WITH_GPU + script) < 0.5  # 250 us a call; about 5 us here


def test_smi_answers_a_query(stub: Path) -> None:
    columns = "index,name,utilization.gpu,memory.total,memory.reserved,memory.used,memory.free,temperature.gpu"
    assert query(stub, machines.ONE_H100, columns) == [
        ["0", "NVIDIA H100 80GB HBM3", "97", "81920", "500", "41984", "39436", "61"]
    ]
    columns = "temperature.memory,power.draw,enforced.power.limit,clocks.sm,clocks.max.mem,mig.mode.current,pstate"
    assert query(stub, machines.ONE_L40S, columns) == [["[N/A]", "248.90", "350.00", "2490", "9001", "[N/A]", "P0"]]
    columns = "clocks_throttle_reasons.active,clocks_event_reasons.active,ecc.errors.uncorrected.volatile.total"
    assert query(stub, machines.HOT, columns) == [["0x0000000000000068", "0x0000000000000068", "0"]]


def test_smi_shows_failures_as_cells(stub: Path) -> None:
    rows = query(stub, machines.LOST, "index,name,power.draw")
    assert rows[2] == ["2", "NVIDIA H100 80GB HBM3", "514.34"]
    assert rows[3] == ["3", "[GPU is lost]", "[GPU is lost]"]
    refused = machines.ONE_H100.change(0, errors={"nvmlDeviceGetPowerUsage": NO_PERMISSION})
    assert query(stub, refused, "power.draw,temperature.gpu") == [["[Insufficient Permissions]", "61"]]


def test_smi_fails_as_the_real_one_does(stub: Path) -> None:
    arguments = ("--query-gpu=name", "--format=csv,noheader,nounits")
    done = smi(stub, machines.NO_DRIVER, *arguments)
    assert (done.returncode, done.stdout.splitlines()[0][:28]) == (9, "NVIDIA-SMI has failed becaus")
    done = smi(stub, machines.MISMATCH, *arguments)
    assert (done.returncode, done.stdout.splitlines()) == (
        18,
        ["Failed to initialize NVML: Driver/library version mismatch", "NVML library version: 13.580.95.05"],
    )
    assert smi(stub, machines.NO_GPUS, *arguments).stdout == "No devices were found\n"
    done = smi(stub, machines.ONE_H100, "--query-gpu=name,gpu.dram", arguments[1])
    assert (done.returncode, done.stdout.splitlines()[0]) == (2, 'Field "gpu.dram" is not a valid field to query.')


def test_smi_names_processes(stub: Path) -> None:
    scenario = machines.ONE_H100.change(0, processes={os.getpid(): 256 * 1024 * 1024, 4_000_000: None})
    done = smi(
        stub,
        scenario,
        "--query-compute-apps=gpu_uuid,pid,process_name,used_memory",
        "--format=csv,noheader,nounits",
    )
    uuid, executable = machines.h100().uuid, Path("/proc/self/exe").resolve()
    assert isinstance(uuid, str)
    assert done.stdout.splitlines() == [
        f"{uuid}, {os.getpid()}, {executable}, 256",
        f"{uuid}, 4000000, [Not Found], [N/A]",
    ]


def test_smi_repeats_until_it_is_ended(stub: Path) -> None:
    machines.ONE_H100.write(stub / nvml.SCENARIO)
    command = [str(stub / nvml.SMI), "--query-gpu=temperature.gpu", "--format=csv,noheader,nounits", "-lms", "50"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        machines.HOT.write(stub / nvml.SCENARIO)
        later = [process.stdout.readline() for _ in range(4)]
        process.kill()
    assert first == "61\n"
    assert later[-1] == "91\n"


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DROPLET_CONSOLE_LAB_CACHE", str(tmp_path / "empty"))
    with pytest.raises(NoCompilerError, match="apt-get install gcc"):
        nvml.build(tmp_path / "out")


@pytest.mark.lab
def test_a_droplet_has_gpus_and_loses_one(lab_machine: Machine) -> None:
    nvml.install(lab_machine, machines.EIGHT_H100)
    listing = ["nvidia-smi", "--query-gpu=temperature.gpu", "--format=csv,noheader,nounits"]
    try:
        assert lab_machine.run(listing).stdout.split() == [b"61", b"62", b"63", b"64", b"65", b"66", b"67", b"68"]
        nvml.set_scenario(lab_machine, machines.LOST)
        assert lab_machine.run(listing).stdout.splitlines()[3] == b"[GPU is lost]"
        load = "import ctypes; print(ctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2())"
        assert lab_machine.run(["python3", "-c", load]).stdout == b"0\n"
    finally:
        nvml.remove(lab_machine)
    assert lab_machine.run(["sh", "-c", "command -v nvidia-smi"], check=False).returncode != 0
