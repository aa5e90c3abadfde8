"""What goes wrong is shown within 3 s, and heals by itself within 10 s of the cause's end, tripping no limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.domain.telemetry.sample import Sample
from console.services.link import Event, Phase
from tests.lab import nvml
from tests.lab.fixtures import ProxyMaker
from tests.lab.machine import Machine
from tests.lab.nvml import machines as gpus
from tests.lab.proxy import Proxy
from tests.lab.triton.options import Options
from tests.lab.triton.unit import TritonUnit, install
from tests.lab.watched import Watched, model, server

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

SHOWN_S = 3.0
HEALED_S = 10.0
CUT_S = 30.0


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    # What bans a tool that knocks too often: UFW's limit, and an sshd that lets few strangers wait.
    with Machine("bookworm", sshd=["MaxStartups 4:100:4"]) as droplet:
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


@pytest.fixture
def watched(machine: Machine, triton: TritonUnit, tmp_path: Path) -> Iterator[Watched]:
    with Watched(machine, tmp_path) as watching:
        watching.sample(lambda sample: state_of(sample) == "ready")
        yield watching


def state_of(sample: Sample) -> str | None:
    found = server(sample)
    return found.state if found else None


def shown(watched: Watched, do: Callable[[], object], wanted: Callable[[Sample], object]) -> None:
    """Do something, and see it within 3 s."""
    began = time.monotonic()
    do()
    done = time.monotonic()
    seen = watched.until(lambda event: event.sample is not None and wanted(event.sample), SHOWN_S + 2, since=began)
    assert seen - done <= SHOWN_S


def test_a_stopped_triton_is_shown_and_its_return_too(watched: Watched, triton: TritonUnit) -> None:
    shown(watched, triton.stop, lambda sample: state_of(sample) == "stopped")
    stopped = server(watched.samples[-1])
    assert stopped is not None
    assert stopped.models_ready in (0, None)
    began = time.monotonic()
    triton.start()
    ready = time.monotonic()
    healed = watched.until(
        lambda event: (
            event.sample is not None and state_of(event.sample) == "ready" and model(event.sample, "echo")
        ),
        HEALED_S + 2,
        since=began,
    )
    assert healed - ready <= HEALED_S


def test_a_crashed_triton_is_shown_as_restarting_or_new(watched: Watched, triton: TritonUnit) -> None:
    before = server(watched.samples[-1])
    assert before is not None
    shown(watched, triton.kill, lambda sample: state_of(sample) != "ready" or _pid(sample) != before.pid)
    triton.api.wait_ready(30)
    after = watched.sample(lambda sample: state_of(sample) == "ready" and _pid(sample) != before.pid, HEALED_S)
    for sample in watched.samples:
        for one in sample.servers:
            for found in one.models:
                assert (found.rps or 0) >= 0
    restarted = server(after)
    assert restarted is not None
    assert (restarted.restarts or 0) > (before.restarts or 0)


def _pid(sample: Sample) -> int | None:
    found = server(sample)
    return found.pid if found else None


def test_an_unloaded_model_is_shown(watched: Watched, triton: TritonUnit) -> None:
    shown(
        watched,
        lambda: triton.api.unload("curve"),
        lambda sample: (one := model(sample, "curve")) is None or one.state == "UNAVAILABLE",
    )
    began = time.monotonic()
    triton.api.load("curve")
    watched.until(
        lambda event: (
            event.sample is not None and (one := model(event.sample, "curve")) is not None and one.state == "READY"
        ),
        HEALED_S,
        since=began,
    )


def test_a_lost_gpu_is_shown_the_others_go_on_and_it_may_come_back(machine: Machine, watched: Watched) -> None:
    shown(
        watched,
        lambda: nvml.set_scenario(machine, gpus.LOST),
        lambda sample: len(sample.gpus) == 8 and sample.gpus[3].state == "lost",
    )
    after = watched.samples[-1]
    assert all(gpu.state == "ok" and gpu.temperature_c for gpu in after.gpus if gpu.index != 3)
    began = time.monotonic()
    nvml.set_scenario(machine, gpus.EIGHT_H100)
    watched.until(
        lambda event: event.sample is not None and all(gpu.state == "ok" for gpu in event.sample.gpus),
        HEALED_S,
        since=began,
    )


@pytest.mark.parametrize("how", ["cut", "stall"])
def test_a_line_that_is_gone_for_30_s_is_shown_and_comes_back(
    machine: Machine, triton: TritonUnit, tmp_path: Path, proxy: ProxyMaker, how: str
) -> None:
    line = proxy(machine)
    with Watched(machine, tmp_path, at=(line.address, line.port)) as watched:
        watched.sample(lambda sample: sample.interval is not None)
        _gone_and_back(watched, line, how)
        assert triton.api.ready()
    dropped = machine.run(["journalctl", "--no-pager", "--output=cat", "_COMM=sshd"]).stdout
    assert b"MaxStartups" not in dropped
    assert b"UFW LIMIT BLOCK" not in machine.run(["dmesg"], check=False).stdout


def _gone_and_back(watched: Watched, line: Proxy, how: str) -> None:
    began = time.monotonic()
    line.cut() if how == "cut" else line.stall()
    told = watched.until(_not_live, SHOWN_S + 1, since=began)
    assert told - began <= SHOWN_S
    time.sleep(max(began + CUT_S - time.monotonic(), 0))
    line.mend() if how == "cut" else line.resume()
    ended = time.monotonic()
    back = watched.until(lambda event: event.sample is not None, HEALED_S + 5, since=ended)
    assert back - ended <= HEALED_S
    rates = watched.sample(lambda sample: sample.interval is not None, 5)
    assert rates.missed == 0


def _not_live(event: Event) -> bool:
    return event.link is not None and event.link.phase in (Phase.STALLED, Phase.WAITING, Phase.CONNECTING)


def test_the_newer_sshd_never_has_reason_to_punish(tmp_path: Path, proxy: ProxyMaker) -> None:
    with Machine("trixie") as newer:
        line = proxy(newer)
        with Watched(newer, tmp_path, at=(line.address, line.port)) as watched:
            watched.sample(lambda sample: sample.interval is not None)
            _gone_and_back(watched, line, "cut")
            journal = newer.run(["journalctl", "--no-pager", "--output=cat", "--unit=ssh"]).stdout
        assert b"penalty" not in journal
