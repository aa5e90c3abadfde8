"""The long proofs: `make soak`. What must hold for minutes and hours, on a line that is made bad at random."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import nvml
from tests.lab.fixtures import ProxyMaker
from tests.lab.machine import Machine
from tests.lab.nvml import machines as gpus
from tests.lab.proxy import Proxy
from tests.lab.triton.load import infer_target, open_loop
from tests.lab.triton.options import Options
from tests.lab.triton.unit import TritonUnit, install
from tests.lab.watched import Watched, model

pytestmark = [pytest.mark.lab, pytest.mark.slow]

MINUTES = float(os.environ.get("DROPLET_CONSOLE_SOAK_MINUTES", "10"))
LOGINS, WINDOW_S = 4, 30.0


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with Machine("bookworm") as droplet:
        droplet.run(["ufw", "limit", "22/tcp"])
        droplet.run(["ufw", "allow", "8000:8002/tcp"])
        droplet.run(["ufw", "--force", "enable"])
        yield droplet


@pytest.fixture(scope="module")
def triton(machine: Machine) -> TritonUnit:
    nvml.install(machine, gpus.EIGHT_H100)
    unit = install(machine, Options(load=("curve", "echo"), extra=("--allow-gpu-metrics=false",)))
    unit.start()
    return unit


def test_a_line_that_fails_at_random_trips_no_limit_and_always_comes_back(
    machine: Machine, triton: TritonUnit, tmp_path: Path, proxy: ProxyMaker
) -> None:
    chance = random.Random(20261130)
    line = proxy(machine)
    end = time.monotonic() + MINUTES * 60
    logins: list[tuple[float, int]] = []
    with Watched(machine, tmp_path, at=(line.address, line.port)) as watched:
        watched.sample(lambda sample: sample.interval is not None)
        while time.monotonic() < end:
            _break(line, chance, logins)
            watched.sample(lambda sample: True, seconds=40)
            for _ in range(int(chance.uniform(1, 20))):
                logins.append((time.monotonic(), line.traffic().connections))
                time.sleep(1)
    for start, before in logins:
        within = [count for moment, count in logins if start <= moment <= start + WINDOW_S]
        assert max(within) - before <= LOGINS
    assert triton.api.ready()
    assert b"UFW LIMIT BLOCK" not in machine.run(["dmesg"], check=False).stdout


def _break(line: Proxy, chance: random.Random, logins: list[tuple[float, int]]) -> None:
    cut = chance.random() < 0.5
    line.cut() if cut else line.stall()
    until = time.monotonic() + chance.choice([0.5, 3, 8, 15, 30])
    while time.monotonic() < until:
        logins.append((time.monotonic(), line.traffic().connections))
        time.sleep(0.5)
    line.mend() if cut else line.resume()


def test_every_request_of_a_long_load_is_in_exactly_one_window(
    machine: Machine, triton: TritonUnit, tmp_path: Path
) -> None:
    api = triton.api
    with Watched(machine, tmp_path, interval=0.25) as watched:
        before = watched.sample(lambda sample: (one := model(sample, "echo")) and one.rps == 0)
        first = len(watched.samples)
        result = open_loop(infer_target(api.address, api.http, "echo"), rate=100, seconds=MINUTES * 60, seed=1)
        after = watched.sample(lambda sample: (one := model(sample, "echo")) and one.rps == 0)
        seen = watched.samples[first:]
    total = sum((one.rps or 0) * (sample.interval or 0) for sample in seen if (one := model(sample, "echo")))
    assert total == pytest.approx(result.sent, rel=1e-6)
    start, end = model(before, "echo"), model(after, "echo")
    assert start is not None
    assert end is not None
    assert (end.requests or 0) - (start.requests or 0) == result.succeeded


def test_memory_of_both_sides_stays_flat(machine: Machine, triton: TritonUnit, tmp_path: Path) -> None:
    with Watched(machine, tmp_path, interval=0.1) as watched:
        watched.sample(lambda sample: sample.interval is not None)
        time.sleep(20)
        ours = _resident(os.getpid())
        watched.forget()
        theirs = _collector_memory(machine)
        deadline = time.monotonic() + MINUTES * 60
        while time.monotonic() < deadline:
            time.sleep(5)
            watched.forget()
        assert _resident(os.getpid()) - ours < 8 << 20
        assert _collector_memory(machine) - theirs < 2 << 20


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _collector_memory(machine: Machine) -> int:
    """Bytes resident of the telemetry script on the droplet."""
    listed = machine.run(["ps", "-e", "-o", "rss=,args="]).stdout.decode(errors="replace").splitlines()
    (found,) = [line for line in listed if "python3 -I -S -c import sys;exec(sys.argv[1])" in line]
    return int(found.split()[0]) * 1024
