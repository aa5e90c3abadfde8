"""A real droplet on which everything that has a name has a hostile one, and servers that answer as none should."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lab import nvml
from tests.lab.machine import Machine
from tests.lab.nvml import machines as gpus
from tests.lab.triton.load import closed_loop, infer_target
from tests.lab.triton.options import Options
from tests.lab.triton.unit import install
from tests.lab.watched import Watched, server

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
SERVER = Path(__file__).with_name("hostile_server.py")
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTNAME = b"\x1b]0;own\x07[red]h\xff"
FOLDERS = (
    b"\x1b]0;owned\x07\x1b[31mred",
    b"new\nline\r",
    "bidi\u202eabc\u2066".encode(),
    b"bad\xff\xfeutf",
    b"c1\x9b2J",
    b"per%41cent til~de q'uo\"te {curly} back\\slash",
    b"x" * 200,
)
LOADED = "[red]m"
# Who seems to use the GPU is a holder, also where process ids are not the host's.
HOLDER = r"""p=$(printf '/opt/\033[31m\233)[red]libcuda'); cp /bin/sleep "$p"; exec "$p" 600"""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with Machine("bookworm") as droplet:
        yield droplet


class Cli:
    """The command on this droplet, as a person runs it."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self._config = folder / "config.yaml"
        self._config.write_text(
            f"droplets: {{d: {{host: {machine.address}, user: root, identity: ['{machine.key()}']}}}}\n"
        )
        state = folder / "droplet-console"
        state.mkdir()
        (state / "known_hosts").write_text(machine.known_hosts)
        self._environment = {**os.environ, "XDG_STATE_HOME": str(folder), "LC_ALL": "C.UTF-8"}

    def run(self, command: str, *words: str) -> str:
        """What it printed; nothing raw is among it, nor in what it said on the way."""
        call = [sys.executable, "-m", "console", command, "d", *words, "--config", str(self._config)]
        done = subprocess.run(call, cwd=ROOT, env=self._environment, capture_output=True, timeout=60)
        shown, said = done.stdout.decode(), done.stderr.decode()
        assert done.returncode in (0, 1), said
        assert "Traceback" not in said
        for text in (shown, said):
            found = RAW.search(text)
            assert found is None, ascii(text[max(found.start() - 40, 0) : found.end() + 40])
        return shown

    def samples(self, count: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run("watch", "--json", "--count", str(count)).splitlines()]


@pytest.fixture
def cli(machine: Machine, tmp_path: Path) -> Cli:
    return Cli(machine, tmp_path)


def test_no_name_of_anything_reaches_the_terminal_raw_or_hides_another(machine: Machine, cli: Cli) -> None:
    machine.write("/opt/holder", HOLDER)
    machine.run(["systemd-run", "--unit=holder", "sh", "/opt/holder"])
    pid = int(machine.run(["systemctl", "show", "--property=MainPID", "--value", "holder"]).stdout)
    nvml.install(machine, gpus.HOSTILE_NAMES.change(0, processes={pid: 3 << 30}))
    set_hostname = f"import socket; socket.sethostname(bytes.fromhex('{HOSTNAME.hex()}'))"
    machine.run(["python3", "-c", set_hostname])
    options = Options(load=("echo", LOADED), extra=("--allow-gpu-metrics=false",))
    triton = install(machine, options, models=("echo",))
    for name in (*FOLDERS, LOADED.encode()):
        shutil.copytree(triton.models / "echo", triton.models / os.fsdecode(name))
    triton.start()
    try:
        closed_loop(infer_target(machine.address, options.http, "echo"), 40, 4)
        shown = cli.run("status")
        assert r"(\x1b]0;own\x07[red]h" in shown
        assert r"\x1b]0;owned\x07\x1b[31mNVIDIA" in shown
        assert "[bold red]NVIDIA[/] {name} $(id) `id`" in shown
        for named in (r"new\nline\r", r"bidi\u202eabc\u2066", "back\\slash", r"\x1b]0;owned\x07\x1b[31mred"):
            assert named in " ".join(shown.split())
        assert r"memory held by \x1b[31m" in " ".join(shown.split())
        cli.run("watch", "--count", "2")
        last = cli.samples(2)[-1]
        (told,) = last["servers"]
        models = {model["name"]: model for model in told["models"]}
        assert len(models) == 9
        assert models[LOADED]["scheduling"] == "dynamic_batching", "its config was asked for by its name as it is"
        assert models["echo"]["requests"] == 40
        assert [gpu["temperature_c"] for gpu in last["gpus"]] == [61, 62, 63, 64, 65, 66, 67]
    finally:
        triton.remove()
        nvml.remove(machine)
        machine.run(["systemctl", "stop", "holder"])


@pytest.mark.parametrize(
    ("way", "words", "most"),
    [
        ("endless", "the answer is larger than 8 MiB|in time", 64),
        ("endless-head", "the answer's head is larger than 64 KiB", 30),
        ("dripping", "it does not answer in time", 30),
        ("packed", "its answer cannot be read: it is no JSON", 30),
        ("series", "more series are left out|in time", 80),
        ("models", "more models are left out|in time|fits in one line", 160),
        ("strings", "", 40),
    ],
)
def test_a_server_that_answers_as_none_should_costs_little_and_takes_nothing_else_away(
    machine: Machine, cli: Cli, way: str, words: str, most: int
) -> None:
    # What is much to send may also be late: how fast this machine is decides which is said.
    machine.write("/opt/hostile/server.py", SERVER.read_bytes())
    program = f"python3 /opt/hostile/server.py --http-port=8000 --metrics-port=8002 {way}"
    machine.run(["systemd-run", "--unit=hostile", "bash", "-c", f"exec -a /opt/hostile/tritonserver {program}"])
    peak = Peak(machine)
    try:
        samples = cli.samples(6)
    finally:
        used = peak.stop()
        machine.run(["systemctl", "stop", "hostile"])
    assert 0 < used < most
    assert [sample["seq"] for sample in samples] == list(range(6))
    assert all(sample["host"]["cpu"]["busy_percent"] is not None for sample in samples[1:])
    assert all(sample["interval"] < 3 for sample in samples[1:])
    reasons = {reason for sample in samples for reason in sample["unavailable"].values()}
    assert any(re.search(words, reason) for reason in reasons), reasons


class Peak:
    """The most MiB that the telemetry script on a droplet took."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._over = threading.Event()
        self._peak = 0
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._peak >> 10

    def _look(self) -> None:
        look = "grep -lzx -- -S /proc/[0-9]*/cmdline | sed 's/cmdline/status/' | xargs -r grep -h VmHWM"
        while not self._over.wait(0.3):
            found = self._machine.run(["sh", "-c", look], check=False).stdout.decode()
            self._peak = max([self._peak, *(int(line.split()[1]) for line in found.splitlines())])


def test_a_server_in_a_loop_of_crashes_is_never_called_starting_for_long(machine: Machine, cli: Cli) -> None:
    triton = install(machine, Options(load=("echo", "broken")), models=("echo", "broken"))
    triton.start(wait=False)
    try:
        deadline = time.monotonic() + 40
        shown = ""
        while "restart 2" not in shown and time.monotonic() < deadline:
            shown = " ".join(cli.run("status", "--first").split())
        assert "TRITON triton, restarting" in shown
    finally:
        triton.remove()


def test_a_server_that_hangs_is_told_and_the_rest_goes_on_each_second(machine: Machine, tmp_path: Path) -> None:
    nvml.install(machine, gpus.ONE_H100)
    triton = install(machine, Options(load=("echo",), extra=("--allow-gpu-metrics=false",)), models=("echo",))
    triton.start()
    try:
        with Watched(machine, tmp_path) as watched:
            watched.sample(lambda sample: (found := server(sample)) and found.state == "ready")
            began = time.monotonic()
            triton.machine.run(["kill", "-STOP", str(triton.pid())])
            told = watched.until(
                lambda event: event.sample and (found := server(event.sample)) and found.state == "unreachable",
                5,
                since=began,
            )
            assert told - began <= 3
            hung = [watched.sample(lambda sample: True, 3) for _ in range(4)]
            for sample in hung:
                assert sample.missed == 0
                assert sample.host.cpu.busy_percent is not None
                assert sample.gpus[0].utilization_percent == 97
                assert "suspended" in (server(sample) or pytest.fail("it is gone")).reason  # type: ignore[operator]
            triton.machine.run(["kill", "-CONT", str(triton.pid())])
            watched.sample(lambda sample: (found := server(sample)) and found.state == "ready", 10)
    finally:
        triton.remove()
        nvml.remove(machine)


def test_what_a_restricted_server_keeps_for_itself_is_said(machine: Machine, cli: Cli) -> None:
    options = Options(load=("echo",), restricted=("model-repository",), extra=("--allow-gpu-metrics=false",))
    triton = install(machine, options, models=("echo", "broken"))
    triton.start()
    try:
        shown = " ".join(cli.run("status").split())
        assert "not all can be told about the models: Triton restricts access to its repository index (403" in shown
    finally:
        triton.configure(replace(options, restricted=()))
        triton.remove()
