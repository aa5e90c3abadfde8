"""100 droplets at 1 Hz over real SSH logins, ten at a time: what they cost this side, and how soon all are live."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from threading import Thread

from benchmarks.figure import Figure
from benchmarks.lab import Bench, console, cpu_seconds, droplet, resident_bytes
from tests.lab.nvml import machines as gpus

DROPLETS = 100
FEW = 25
SECONDS = 30.0
FIRST_PORT = 10000
"""Each droplet has a port of its own, all of which lead to the one sshd."""


def run() -> list[Figure]:
    """100 and 25 of them in the same run: what one costs must not grow with how many there are."""
    with (
        tempfile.TemporaryDirectory() as name,
        droplet(Path(name), gpus.ONE_H100, models=2, sshd=("MaxSessions 20",)) as bench,
    ):
        ports = f"{FIRST_PORT}:{FIRST_PORT + DROPLETS - 1}"
        redirect = ["--protocol", "tcp", "--dport", ports, "--jump", "REDIRECT", "--to-ports", "22"]
        bench.machine.run(["iptables", "--table", "nat", "--append", "PREROUTING", *redirect])
        few = _measure(bench, FEW)
        all_of_them = _measure(bench, DROPLETS)
    live, core, memory = all_of_them
    return [
        Figure(f"{DROPLETS} droplets live after", live, 15.0, "s", f"{FEW} after {few[0]:.1f} s"),
        Figure(f"{DROPLETS} at 1 Hz, this side", 100 * core, 25.0, "% core", f"{FEW}: {100 * few[1]:.1f} %"),
        Figure("its memory", memory / 1e6, 120.0, "MB", f"{FEW}: {few[2] / 1e6:.0f} MB"),
        Figure("cost a droplet, 100 against 25", core / DROPLETS / (few[1] / FEW), 1.25, "x", "processor time"),
    ]  # fmt: skip


def _measure(bench: Bench, count: int) -> tuple[float, float, int]:
    """Seconds until all are live; then the share of a core and the memory."""
    at = {f"d{number}": (bench.machine.address, FIRST_PORT + number) for number in range(count)}
    environment = bench.settings(at)
    seen: dict[str, float] = {}
    began = time.monotonic()
    argv = console("watch", "--json", *at)
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as watch:
        assert watch.stdout is not None
        lines = watch.stdout

        def read() -> None:
            for line in lines:
                # The name stands near the start; parsing all of it would cost this process more than it costs ours.
                head = json.loads(line)["droplet"] if len(seen) < count else None
                if head is not None:
                    seen.setdefault(head, time.monotonic())

        reader = Thread(target=read, daemon=True)
        reader.start()
        while len(seen) < count and time.monotonic() - began < 60:
            time.sleep(0.05)
        if len(seen) < count:
            watch.terminate()
            raise TimeoutError(f"only {len(seen)} of {count} droplets were live after 60 s")
        live = max(seen.values()) - began
        time.sleep(3)
        cpu, start = cpu_seconds(watch.pid), time.monotonic()
        time.sleep(SECONDS)
        core = (cpu_seconds(watch.pid) - cpu) / (time.monotonic() - start)
        memory = resident_bytes(watch.pid)
        watch.terminate()
        watch.wait(20)
    return live, core, memory
