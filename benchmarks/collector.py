"""What the collector costs the droplet at 1 Hz: 8 GPUs and 10 models under load."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.lab import Bench, console, cpu_seconds, droplet, resident_bytes, until
from tests.lab.nvml import machines as gpus
from tests.lab.proxy import Proxy
from tests.lab.triton.load import infer_target, open_loop

MODELS = 10
RATE = 10.0
"""Requests per second to each model: every count changes at every tick."""
SECONDS = 60.0


def run() -> list[Figure]:
    """Processor, memory and bytes, beside `nvidia-smi -l 1` and curl of the two addresses, once a second."""
    with (
        tempfile.TemporaryDirectory() as name,
        droplet(Path(name), gpus.EIGHT_H100, MODELS) as bench,
        Proxy((bench.machine.address, bench.machine.ssh_port)) as line,
    ):
        loads = _load(bench, SECONDS + 20)
        figures = _measure(bench, line)
        for load in loads:
            load.join()
        return figures


def _load(bench: Bench, seconds: float) -> list[threading.Thread]:
    address, port = bench.triton.api.address, bench.triton.api.http
    threads = [
        threading.Thread(
            target=open_loop,
            args=(infer_target(address, port, f"echo_{number:02}"), RATE, seconds),
            kwargs={"seed": number},
        )
        for number in range(MODELS)
    ]
    for thread in threads:
        thread.start()
    return threads


def _measure(bench: Bench, line: Proxy) -> list[Figure]:
    environment = bench.settings({"bench": (line.address, line.port)})
    argv = console("watch", "bench", "--json")
    with subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as watch:
        try:
            pid = _collector(bench)
            time.sleep(5)
            cpu, sent, began = cpu_seconds(pid), line.traffic().down, time.monotonic()
            time.sleep(SECONDS)
            passed = time.monotonic() - began
            cpu, sent = cpu_seconds(pid) - cpu, line.traffic().down - sent
            memory = resident_bytes(pid)
        finally:
            watch.terminate()
            watch.wait(10)
    theirs = _by_hand(bench)
    return [
        Figure("collector, 8 GPUs, 10 models under load, 1 Hz", 100 * cpu / passed, 1.0, "% core", f"{cpu:.2f} s"),
        Figure("its memory", memory / 1e6, 30.0, "MB", f"{memory} bytes resident"),
        Figure("its bytes over SSH, encryption included", sent / passed / 1000, 1.5, "KB/s", f"{sent} bytes"),
        Figure("its time against nvidia-smi and curl once a second", cpu / passed / theirs, 1.0, "x",
               f"they take {100 * theirs:.1f} % of a core"),
    ]  # fmt: skip


def _collector(bench: Bench) -> int:
    """The collector's process id on this machine: the only Python inside the droplet that runs our scripts."""
    for _ in until(20, "the collector did not start"):
        for process in Path("/proc").glob("[0-9]*"):
            if _is_collector(process) and _text(process / "root/etc/hostname").strip() == bench.machine.name:
                return int(process.name)
    raise AssertionError


def _is_collector(process: Path) -> bool:
    argv = _text(process / "cmdline").split("\0")
    return "python" in argv[0] and any(word.startswith("import sys;exec(sys.argv[1])") for word in argv[1:5])


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended meanwhile
        return ""


def _by_hand(bench: Bench) -> float:
    """Processor seconds per second of what people do: nvidia-smi and two curls, once a second."""
    rounds = 20
    fields = "index,utilization.gpu,utilization.memory,memory.used,temperature.gpu,power.draw"
    script = (
        f"i=0; while [ $i -lt {rounds} ]; do nvidia-smi --query-gpu={fields} --format=csv,noheader >/dev/null; "
        "for from in 8000/v2/models/stats 8002/metrics; do curl -s http://127.0.0.1:$from >/dev/null; done; "
        "i=$((i+1)); done; cat /proc/$$/stat"
    )
    stat = bench.machine.run(["sh", "-c", script], timeout=120).stdout.decode()
    fields_after_name = stat.rpartition(")")[2].split()
    return sum(int(field) for field in fields_after_name[11:15]) / 100 / rounds
