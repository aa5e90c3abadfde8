"""The screens in a real terminal: first paint against a bare Textual app, bytes, processor time, key to paint."""

from __future__ import annotations

import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks import bare_app
from benchmarks.figure import Figure, median
from benchmarks.fleet import DROPLETS, FIRST_PORT
from benchmarks.lab import Bench, cpu_seconds, droplet
from benchmarks.terminal import Terminal
from console.tui import theme
from tests.lab.nvml import machines as gpus
from tests.lab.triton.load import infer_target, open_loop

CONFIGURED = 20
ROUNDS = 15
IDLE_S = 15.0
STREAM_S = 30.0
KEYS = 60
RATE = 20.0
"""Requests a second to each of two models."""
LOAD_S = 600.0
_CONSOLE = [str(Path(sys.executable).parent / "droplet-console")]
_BARE = [sys.executable, str(Path(bare_app.__file__))]


def run() -> list[Figure]:
    """What needs no droplet first, then 100 real ones over SSH."""
    with tempfile.TemporaryDirectory() as name:
        figures = [*_first_paint(Path(name)), *_idle(Path(name))]
    with (
        tempfile.TemporaryDirectory() as name,
        droplet(Path(name), gpus.ONE_H100, models=2, sshd=("MaxSessions 20",)) as bench,
    ):
        ports = f"{FIRST_PORT}:{FIRST_PORT + DROPLETS - 1}"
        redirect = ["--protocol", "tcp", "--dport", ports, "--jump", "REDIRECT", "--to-ports", "22"]
        bench.machine.run(["iptables", "--table", "nat", "--append", "PREROUTING", *redirect])
        load = _load(bench)  # so that every tick has other figures than the one before
        figures += [*_overview(bench), *_fleet(bench)]
        load.terminate()
        load.join()
        return figures


def _load(bench: Bench) -> multiprocessing.Process:
    """Requests to both models, from a process of its own: it must not hold up the one that measures."""
    load = multiprocessing.Process(
        target=_send, args=(bench.triton.api.address, bench.triton.api.http), daemon=True
    )
    load.start()
    return load


def _send(address: str, port: int) -> None:
    threads = [
        threading.Thread(target=open_loop, args=(infer_target(address, port, f"echo_{number:02}"), RATE, LOAD_S))
        for number in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _first_paint(folder: Path) -> list[Figure]:
    environment = _settings(
        folder, "".join(f"  gpu-{n}: {{host: 127.0.0.1, port: 1}}\n" for n in range(CONFIGURED))
    )
    bare, ours = [], []
    # Interleaved, so that whatever else the machine does falls on both.
    for _ in range(ROUNDS):
        bare.append(_seconds_to(_BARE, environment, bare_app.WORDS.encode()))
        ours.append(_seconds_to(_CONSOLE, environment, b"DROPLET"))
    ratio = statistics.median(one / other for one, other in zip(ours, bare, strict=True))
    detail = f"{median(ours) * 1000:.0f} ms against {median(bare) * 1000:.0f} ms"
    return [Figure(f"first paint with {CONFIGURED} droplets against a bare Textual app", ratio, 1.3, "x", detail)]


def _seconds_to(argv: list[str], environment: dict[str, str], text: bytes) -> float:
    with Terminal(argv, environment) as terminal:
        return terminal.wait_for(text) - terminal.began


def _idle(folder: Path) -> list[Figure]:
    """Droplets that refuse: nothing to show but the clock, and the tries that go on."""
    words = "".join(f"  gpu-{number}: {{host: 127.0.0.1, port: 1}}\n" for number in range(CONFIGURED))
    with Terminal(_CONSOLE, _settings(folder, words), width=200, height=50) as terminal:
        terminal.wait_for(b"retrying")
        time.sleep(5)
        before, cpu = terminal.written, cpu_seconds(terminal.pid)
        time.sleep(IDLE_S)
        rate = (terminal.written - before) / IDLE_S / 1024
        core = 100 * (cpu_seconds(terminal.pid) - cpu) / IDLE_S
    detail = f"200x50, {CONFIGURED} droplets that refuse and are tried again, {core:.1f} % of a core"
    return [Figure("idle: bytes to the terminal", rate, 1.0, "KiB/s", detail)]


def _fleet(bench: Bench) -> list[Figure]:
    at = {f"d{number:03}": (bench.machine.address, FIRST_PORT + number) for number in range(DROPLETS)}
    with Terminal(_CONSOLE, bench.settings(at), width=200, height=50) as terminal:
        terminal.wait_for(f"{DROPLETS} of {DROPLETS} live".encode(), 90)
        time.sleep(5)
        rate, core = _cost(terminal)
        late = _key_to_paint(terminal)
    return [
        Figure(f"Fleet with {DROPLETS} droplets", core, 35.0, "% core", f"SSH included, 200x50, {rate:.1f} KiB/s"),
        Figure("its bytes to the terminal", rate, 60.0, "KiB/s", "47 rows are in sight"),
        Figure("key to paint while they stream, 95th percentile", late, 50.0, "ms", f"{KEYS} keys"),
    ]


def _overview(bench: Bench) -> list[Figure]:
    at = {"one": (bench.machine.address, FIRST_PORT)}
    with Terminal(_CONSOLE, bench.settings(at), width=160, height=50) as terminal:
        terminal.wait_for(b"live", 60)
        time.sleep(5)
        rate, core = _cost(terminal)
    return [
        Figure("Overview", core, 8.0, "% core", "SSH included, 160x50, 2 models, one GPU"),
        Figure("its bytes to the terminal", rate, 40.0, "KiB/s", "one sample a second"),
    ]


def _cost(terminal: Terminal) -> tuple[float, float]:
    """KiB a second, and percent of a core."""
    before, cpu, began = terminal.written, cpu_seconds(terminal.pid), time.monotonic()
    time.sleep(STREAM_S)
    passed = time.monotonic() - began
    core = 100 * (cpu_seconds(terminal.pid) - cpu) / passed
    terminal.forget()
    return (terminal.written - before) / passed / 1024, core


def _key_to_paint(terminal: Terminal) -> float:
    """Milliseconds from a key to the cursor's colour on the next line, at the 95th percentile."""
    ground = theme.look("dark")["cursor"].bgcolor
    assert ground is not None
    assert ground.triplet is not None
    red, green, blue = ground.triplet
    colour = f"48;2;{red};{green};{blue}".encode()
    taken = []
    for number in range(KEYS):
        down = number % 40 < 20  # twenty lines down, twenty up: nothing scrolls
        line = 3 + (number % 40 if number % 40 < 20 else 40 - number % 40) + (1 if down else -1)
        terminal.forget()
        pressed = terminal.press("j" if down else "k")
        taken.append((_painted(terminal, line, colour) - pressed) * 1000)
        time.sleep(0.137)  # out of step with the timers
    return statistics.quantiles(taken, n=20)[-1]


def _painted(terminal: Terminal, line: int, colour: bytes) -> float:
    """When the cursor's colour was first painted on a line."""
    wanted = re.compile(rb"\x1b\[%d;\d+H(?:(?!\x1b\[\d+;\d+H).)*?%s" % (line, re.escape(colour)), re.DOTALL)
    return terminal.wait_for(wanted, 5)


def _settings(folder: Path, droplets: str) -> dict[str, str]:
    file = folder / "config.yaml"
    file.write_text("droplets:\n" + droplets)
    return {**os.environ, "DROPLET_CONSOLE_CONFIG": str(file), "DROPLET_CONSOLE_STATE": str(folder)}
