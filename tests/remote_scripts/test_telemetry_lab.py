"""The stream on a real droplet: real systemd, real Triton, in all the states that a server can be in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.lab.fixtures import MachineMaker
from tests.lab.machine import Machine
from tests.lab.triton.load import closed_loop, infer_target
from tests.lab.triton.options import Options
from tests.lab.triton.unit import TritonUnit, install, start_by_hand
from tests.remote_scripts.telemetry_lab import LabStream

pytestmark = pytest.mark.lab


@pytest.fixture
def triton(lab_machine: Machine) -> Iterator[TritonUnit]:
    unit = install(lab_machine, Options(load=("echo", "flaky")), name="triton")
    yield unit
    unit.remove()


def test_a_unit_through_its_life(lab_machine: Machine, triton: TritonUnit) -> None:
    with LabStream(lab_machine) as stream:
        stopped = stream.state("triton", "stopped", seconds=5)
        assert stopped["unit"] == "triton.service"
        triton.start(wait=False)
        stream.state("triton", "starting", seconds=5)
        ready = stream.state("triton", "ready")
        assert ready["version"] == "2.51.0"
        assert ready["how"] == "unit"
        first_pid = ready["pid"]

        result = closed_loop(infer_target(triton.api.address, triton.api.http, "echo"), 200, 8)
        assert result.succeeded == 200
        loaded = stream.until(lambda found: found["servers"]["triton"]["models"]["echo"]["1"].get("success") == 200)
        echo = loaded["servers"]["triton"]["models"]["echo"]["1"]
        (real,) = triton.api.statistics("echo")
        assert echo["executions"] == real["execution_count"] == sum(count for count, _ in echo["batches"].values())
        assert echo["metrics_success"] == 200
        assert echo["scheduling"] == "dynamic_batching"

        triton.api.unload("flaky")
        stream.until(
            lambda found: found["servers"]["triton"]["models"]["flaky"]["1"]["state"] == "UNAVAILABLE", seconds=3
        )

        triton.kill()
        again = stream.until(
            lambda found: found["servers"]["triton"].get("pid", first_pid) != first_pid, seconds=10
        )
        assert again["servers"]["triton"]["state"] in ("starting", "ready")
        back = stream.state("triton", "ready")
        assert back["restarts"] == 1
        assert back["started"] > ready["started"]

        triton.stop()
        gone = stream.state("triton", "stopped", seconds=3)
        assert "pid" not in gone


def test_a_server_that_cannot_start_is_dead_or_restarting(lab_machine: Machine, triton: TritonUnit) -> None:
    broken = triton.configure(replace(triton.options, repository="/nowhere"))
    with LabStream(lab_machine) as stream:
        stream.state("triton", "stopped", seconds=5)
        broken.start(wait=False)
        stream.state("triton", "restarting", seconds=10)
        # Between two tries systemd says how it ended; during one its process lives.
        stream.until(lambda found: "exit status 1" in found["servers"]["triton"].get("reason", ""))
        lab_machine.run(["systemctl", "stop", "triton"])
        stream.until(lambda found: found["servers"]["triton"]["state"] in ("stopped", "dead"), seconds=5)


def test_a_restricted_one_and_one_by_hand_side_by_side(lab_machine: Machine, triton: TritonUnit) -> None:
    restricted = triton.configure(replace(triton.options, restricted=("health", "statistics")))
    restricted.start(wait=False)
    with LabStream(lab_machine) as stream:
        told = stream.state("triton", "restricted", seconds=30)
        assert "lab-key" in told["reason"]
        assert told["models"]["echo"]["1"]["metrics_success"] == 0
        start_by_hand(
            lab_machine, Options(http=8100, grpc=8101, metrics=None, repository="/models", load=("echo",))
        )
        by_hand = stream.state("triton-8100", "ready", seconds=30)
        assert by_hand["how"] == "process"
        reasons = stream.ticks[-1]["unavailable"]
        assert "--allow-metrics=false" in reasons["/servers/triton-8100/metrics"]
        assert "secret" not in repr(stream.ticks)
        lab_machine.run(["kill", "-STOP", str(by_hand["pid"])])
        hung = stream.state("triton-8100", "unreachable", seconds=5)
        assert "suspended" in hung["reason"]
        lab_machine.run(["kill", "-CONT", str(by_hand["pid"])])
        stream.state("triton-8100", "ready", seconds=5)
        lab_machine.run(["kill", "-KILL", str(by_hand["pid"])])
        stream.state("triton-8100", "dead", seconds=3)


def test_who_is_not_root_sees_the_same_server(lab_machine: Machine, triton: TritonUnit) -> None:
    triton.start()
    with LabStream(lab_machine, user="plain") as stream:
        told = stream.state("triton", "ready", seconds=10)
        assert (told["how"], told["unit"]) == ("unit", "triton.service")
        assert told["models"]["echo"]["1"]["success"] == 0
        restarts = stream.until(lambda found: "restarts" in found["servers"]["triton"], seconds=5)
        assert restarts["servers"]["triton"]["restarts"] == 0


def test_the_newer_release(lab_trixie: Machine) -> None:
    unit = install(lab_trixie, Options(load=("echo",)), name="triton")
    try:
        with LabStream(lab_trixie) as stream:
            stream.state("triton", "stopped", seconds=5)
            unit.start()
            assert stream.state("triton", "ready")["unit"] == "triton.service"
            unit.stop()
            stream.state("triton", "stopped", seconds=5)
    finally:
        unit.remove()


IMAGE = (
    "tar -C / -c --exclude=./var/lib/docker --exclude=./proc --exclude=./sys --exclude=./var/cache . "
    "| docker import - lab/tritonserver:1"
)


def test_servers_in_containers(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm", docker=True)
    install(machine, Options(load=("echo",))).remove()
    machine.run(["sh", "-c", IMAGE], timeout=120)
    command = Options(load=("echo",)).argv()
    run = ["docker", "run", "-d", "-e", "LD_LIBRARY_PATH=/opt/tritonserver/lib", "--restart=on-failure"]
    machine.run([*run, "--name=bridged", "-p", "127.0.0.1:9000:8000", "lab/tritonserver:1", *command], timeout=60)
    with LabStream(machine) as stream:
        bridged = stream.state("bridged", "ready", seconds=60)
        assert (bridged["how"], bridged["container"], bridged["http"]) == ("docker", "bridged", "127.0.0.1:9000")
        assert bridged["metrics"].startswith("172.")
        assert bridged["restarts"] == 0
        assert bridged["models"]["echo"]["1"]["metrics_success"] == 0

        # Only root's way into the container reaches a server that listens on the container's own loopback.
        inner = Options(load=("echo",), address="127.0.0.1").argv()
        machine.run([*run, "--name=inner", "lab/tritonserver:1", *inner], timeout=60)
        stream.state("inner", "ready", seconds=60)

        machine.run(["kill", "-KILL", str(bridged["pid"])])
        stream.until(
            lambda found: found["servers"]["bridged"].get("pid", bridged["pid"]) != bridged["pid"], seconds=10
        )
        assert stream.state("bridged", "ready", seconds=60)["restarts"] == 1

        machine.run(["docker", "stop", "-t", "10", "bridged"], timeout=60)
        stream.state("bridged", "stopped", seconds=3)
        machine.run(["docker", "rm", "-f", "inner"], timeout=60)
        assert "gone" in stream.state("inner", "dead", seconds=3)["reason"]
