"""Overview over the real SSH transport: every figure is the sample's own, and trouble is seen within seconds."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.domain.telemetry.sample import ModelSample, Sample
from console.domain.words import figures as form
from console.remote.prompts import NoPrompter
from console.services.watching import watch
from console.settings.schema import Droplet, Settings
from console.tui import theme
from console.tui.app import ConsoleApp
from console.tui.bridge import Bridge, Watching
from console.tui.state import State
from tests.lab import nvml
from tests.lab.fixtures import ProxyMaker
from tests.lab.machine import Machine
from tests.lab.nvml import machines as gpus
from tests.lab.triton.load import infer_target, open_loop
from tests.lab.triton.options import Options
from tests.lab.triton.unit import TritonUnit, install
from tests.tui.driven import Driven, Tee

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240)]

SHOWN_S = 3.0
"""Trouble is on the screen within this long; 0.2 s of it are the app's own timer."""
HEALED_S = 10.0
CUT_S = 30.0
"""What lasts shorter may take as long: a droplet gets four logins in 30 s at most."""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with Machine("bookworm") as droplet:
        yield droplet


@pytest.fixture(scope="module")
def triton(machine: Machine) -> TritonUnit:
    nvml.install(machine, gpus.EIGHT_H100)
    unit = install(machine, Options(load=("curve", "echo", "flaky"), extra=("--allow-gpu-metrics=false",)))
    unit.start()
    return unit


class Shown(Driven):
    """Overview of the lab droplet, watched as the console watches it."""

    def __init__(self, machine: Machine, state: Path, at: tuple[str, int] | None = None) -> None:
        host, port = at or (machine.address, machine.ssh_port)
        state.mkdir(parents=True, exist_ok=True)
        known_hosts = state / "known_hosts"
        known_hosts.write_text(machine.known_hosts_for(host, port))
        droplet = Droplet(machine.name, host=host, port=port, user="root", identity=(str(machine.key("root")),))
        self.tees: list[Tee] = []

        def open_watch() -> Watching:
            watching = watch([droplet], prompter=NoPrompter(), known_hosts=known_hosts)
            watching.__enter__()
            self.tees.append(Tee(watching))
            return self.tees[-1]

        shown = State({droplet.name: droplet}, Settings(droplets=(droplet,)), current=droplet.name)
        super().__init__(ConsoleApp(shown, Bridge(open_watch), theme.look("dark")), size=(200, 50))

    def frame(self) -> tuple[list[str], Sample]:
        """The lines on the terminal, and the sample that they are of."""

        def both() -> tuple[list[str], Sample | None]:
            from tests.tui.driven import text

            shown = self.overview.picture
            return text(self.app), shown.sample if shown is not None else None

        lines, sample = self.ask(both)
        assert sample is not None
        return lines, self.tees[-1].samples[sample.stream, sample.seq]


@pytest.fixture
def shown(machine: Machine, triton: TritonUnit, tmp_path: Path) -> Iterator[Shown]:
    with Shown(machine, tmp_path) as driven:
        driven.until(lambda lines: "3 of 13 models ready" in "\n".join(lines), 30)
        driven.until(lambda lines: model_row(lines, "echo/1")[1] != form.NA, 10)
        yield driven


def model_row(lines: list[str], name: str) -> list[str]:
    """A model's cells: name, RPS, hit rate, batch, fill, errors, queue, infer, waiting, ..."""
    found = next((line for line in lines if line.startswith(f"{name} ")), None)
    return re.split(r"\s{2,}", found.strip()) if found is not None else ["", form.NA]


def title(lines: list[str], words: str) -> str:
    """What stands after a panel's title."""
    found = next(line for line in lines if words in line)
    return found.partition(words)[2].strip()


def expected(model: ModelSample) -> list[str]:
    def write(value: float | None, shown: Callable[[float], str]) -> str:
        return form.NA if value is None else shown(value)

    return [
        f"{model.name}/{model.version}",
        write(model.rps, form.number),
        write(model.hit_rate, form.percent),
        write(model.mean_batch, form.number),
        write(model.fill_percent, form.whole_percent),
        write(model.error_percent, form.percent),
        write(model.queue_ms, form.milliseconds),
        write(model.compute_infer_ms, form.milliseconds),
        write(model.pending, form.count),
    ]


def check(lines: list[str], sample: Sample) -> None:
    """Every figure on the screen is the sample's own."""
    (server,) = sample.servers
    for model in (one for one in server.models if one.state == "READY"):
        assert model_row(lines, f"{model.name}/{model.version}")[:9] == expected(model)
    assert title(lines, "REQUESTS/S").startswith(form.NA if server.rps is None else f"{form.number(server.rps)} ")
    for gpu in sample.gpus:
        row = next(line for line in lines if line.startswith(f"{gpu.index} H100"))
        assert gpu.dram_percent is not None
        assert gpu.memory_used is not None
        assert form.percent(gpu.dram_percent) in row
        assert f"{gpu.memory_used / 2**30:.1f}/" in row
    assert sample.host.cpu.busy_percent is not None
    assert f"{form.percent(sample.host.cpu.busy_percent)} of" in "\n".join(lines)


def test_every_figure_under_load_is_the_samples_own(shown: Shown, triton: TritonUnit) -> None:
    api = triton.api
    load = threading.Thread(
        target=open_loop,
        args=(infer_target(api.address, api.http, "curve"),),
        kwargs={"rate": 120, "seconds": 14, "seed": 3},
    )
    load.start()
    seen: dict[int, float] = {}
    merged = 0
    deadline = time.monotonic() + 14
    while time.monotonic() < deadline:
        lines, sample = shown.frame()
        if sample.seq not in seen:
            check(lines, sample)
            (curve,) = [model for model in sample.servers[0].models if model.name == "curve"]
            seen[sample.seq] = curve.rps or 0.0
            merged += (curve.hit_rate or 0) > 0
        time.sleep(0.1)
    load.join()
    assert len(seen) >= 10
    steady = sorted(seen.values())[len(seen) // 3 : -1]
    assert sum(steady) / len(steady) == pytest.approx(120, rel=0.25)
    assert merged >= 5


def test_the_chosen_model_is_what_the_large_figures_are_of(shown: Shown, triton: TritonUnit) -> None:
    api = triton.api
    load = threading.Thread(
        target=open_loop,
        args=(infer_target(api.address, api.http, "curve"),),
        kwargs={"rate": 80, "seconds": 6, "seed": 4},
    )
    load.start()
    shown.until(lambda lines: model_row(lines, "curve/1")[1] not in ("0.00", form.NA), 5)
    for _ in range(3):
        shown.press("down")
        lines, sample = shown.frame()
        key = shown.ask(lambda: shown.overview.picture.chosen.model if shown.overview.picture else None)
        assert key is not None
        (model,) = [one for one in sample.servers[0].models if one.name == key.name]
        rps, hit = expected(model)[1:3]
        assert title(lines, "REQUESTS/S").split()[0] == rps
        assert title(lines, "BATCH HIT RATE").startswith(hit)
    load.join()
    shown.press("escape")


def test_a_stopped_triton_stands_on_top_and_its_return_too(shown: Shown, triton: TritonUnit) -> None:
    triton.stop()
    stopped = time.monotonic()
    at = shown.until(lambda lines: "Triton triton stopped" in lines[1] and "!!" in lines[2], SHOWN_S + 2)
    assert at - stopped <= SHOWN_S
    lines, _ = shown.frame()
    assert title(lines, "BATCH HIT RATE").startswith(form.NA)
    assert title(lines, "REQUESTS/S").startswith(form.NA)
    triton.start()
    started = time.monotonic()
    at = shown.until(
        lambda lines: "Triton triton ready" in lines[1] and model_row(lines, "echo/1")[1] == "0.00", HEALED_S + 2
    )
    assert at - started <= HEALED_S
    told = "\n".join(shown.look())
    assert "Triton is stopped" in told
    assert "Triton is ready" in told
    check(*shown.frame())


def test_a_crash_is_a_restart_and_never_a_figure(shown: Shown, triton: TritonUnit) -> None:
    triton.kill()
    killed = time.monotonic()
    at = shown.until(
        lambda lines: "Triton triton ready" not in lines[1] or "restarted" in "\n".join(lines), SHOWN_S + 2
    )
    assert at - killed <= SHOWN_S
    triton.api.wait_ready(30)
    shown.until(
        lambda lines: "Triton triton ready" in lines[1] and model_row(lines, "echo/1")[1] == "0.00", HEALED_S
    )
    assert re.search(r"restarted|\d restart", "\n".join(shown.look()))
    series = shown.ask(lambda: shown.app.state.board.view(shown.app.state.current).series("rps"))
    assert series is not None
    assert all(value is None or value >= 0 for _, _, value in series.points())


def test_a_lost_gpu_stands_on_top_and_may_come_back(machine: Machine, shown: Shown) -> None:
    nvml.set_scenario(machine, gpus.LOST)
    lost = time.monotonic()
    at = shown.until(
        lambda lines: (
            "GPU 3 is lost" in "\n".join(lines[1:4]) and any(re.match(r"3 .*LOST", line) for line in lines)
        ),
        SHOWN_S + 2,
    )
    assert at - lost <= SHOWN_S
    nvml.set_scenario(machine, gpus.EIGHT_H100)
    shown.until(lambda lines: "GPU 3 is back" in "\n".join(lines), HEALED_S)
    assert "GPU 3 is lost" not in "\n".join(shown.look()[1:4])


def test_tritons_ports_come_over_the_same_connection_with_a_call_that_works(
    shown: Shown, triton: TritonUnit
) -> None:
    while shown.ask(lambda: shown.overview.picture.subject if shown.overview.picture else "") != "echo/1":
        shown.press("down")
    before = triton.api.statistics("echo")[0]["inference_stats"]["success"]["count"]
    shown.press("w")
    shown.until(lambda lines: "calling echo with zeros" in "\n".join(lines), 15)
    shown.press("c")
    command = shown.ask(lambda: shown.app.clipboard)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=20)
    assert json.loads(done.stdout)["model_name"] == "echo"
    assert triton.api.statistics("echo")[0]["inference_stats"]["success"]["count"] == before + 1
    shown.press("x")
    shown.until(lambda lines: "the ports are given back" in lines[-1], 5)
    assert subprocess.run(["sh", "-c", command], capture_output=True, timeout=20).returncode != 0


@pytest.mark.parametrize("how", ["cut", "stall"])
def test_a_line_that_is_gone_says_so_and_leaves_a_gap(
    machine: Machine, triton: TritonUnit, tmp_path: Path, proxy: ProxyMaker, how: str
) -> None:
    line = proxy(machine)
    with Shown(machine, tmp_path, (line.address, line.port)) as shown:
        shown.until(lambda lines: model_row(lines, "echo/1")[1] != form.NA, 30)
        line.cut() if how == "cut" else line.stall()
        gone = time.monotonic()
        at = shown.until(lambda lines: "● live" not in lines[0], SHOWN_S + 2)
        assert at - gone <= SHOWN_S
        shown.until(lambda lines: re.search(r"the figures below are \d+ s old", "\n".join(lines[1:4])), SHOWN_S)
        time.sleep(max(gone + CUT_S - time.monotonic(), 0))
        line.mend() if how == "cut" else line.resume()
        back = time.monotonic()
        at = shown.until(lambda lines: "● live" in lines[0], HEALED_S + 5)
        assert at - back <= HEALED_S
        shown.until(lambda lines: "live again after" in "\n".join(lines), 5)
        shown.until(lambda lines: model_row(lines, "echo/1")[1] == "0.00", 5)
        shown.press("plus")  # one minute: a column is about a second
        assert re.search("▁·{5,}▁", "\n".join(shown.look()))
