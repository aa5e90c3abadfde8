"""From nothing to the first tick through a 100 ms round trip, against `ssh HOST true` through the same line."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.figure import Figure, median
from benchmarks.lab import Bench, console, droplet
from tests.lab.nvml import machines as gpus
from tests.lab.proxy import Proxy

ROUND_TRIP_S = 0.1
ROUNDS = 7


def run() -> list[Figure]:
    """Warm (the scripts lie there), and on first contact (they travel)."""
    with tempfile.TemporaryDirectory() as name, droplet(Path(name), gpus.ONE_H100, models=2) as bench:
        address = (bench.machine.address, bench.machine.ssh_port)
        with Proxy(address, delay=ROUND_TRIP_S / 2) as line:
            return _figures(bench, line)


def _figures(bench: Bench, line: Proxy) -> list[Figure]:
    environment = bench.settings({"bench": (line.address, line.port)})
    config = bench.machine.ssh_config_at(line.address, line.port)
    ssh_true = ["ssh", "-F", str(config), bench.machine.name, "true"]
    first_tick = console("watch", "bench", "--json", "--count", "1")
    _seconds(first_tick, environment)
    theirs, warm, cold = [], [], []
    for _ in range(ROUNDS):
        theirs.append(_seconds(ssh_true, dict(os.environ)))
        warm.append(_seconds(first_tick, environment))
        bench.forget_scripts()
        cold.append(_seconds(first_tick, environment))
    ssh_s, warm_s, cold_s = median(theirs), median(warm), median(cold)
    return [
        Figure(
            "first tick through 100 ms, process start included, against `ssh HOST true`",
            warm_s / ssh_s,
            1.1,
            "x",
            f"{warm_s * 1000:.0f} ms against {ssh_s * 1000:.0f} ms",
        ),
        Figure(
            "the same on first contact, when the scripts travel: round trips beyond 1.1 x `ssh HOST true`",
            (cold_s - 1.1 * ssh_s) / ROUND_TRIP_S,
            2.0,
            "trips",
            f"{cold_s * 1000:.0f} ms",
        ),
    ]


def _seconds(argv: list[str], environment: dict[str, str]) -> float:
    """Until the first line of output, or the end where there is none."""
    began = time.perf_counter()
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        passed = time.perf_counter() - began
        if process.wait(30):
            raise RuntimeError(f"{' '.join(argv)} ended with status {process.returncode}")
    return passed
