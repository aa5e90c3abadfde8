"""Makes tests/data/telemetry anew: the real ``telemetry`` script on a lab droplet, and what was really sent to it.

    python -m tests.unit.telemetry_capture

One line a tick: ``{"time", "mono", "moment", "server", "unavailable", "sent"}``, where ``server`` is the whole
branch of the document for the droplet's Triton and ``sent`` what the load source knows at that moment: by model,
the requests that ended well and those that did not.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from tests.lab.machine import Machine
from tests.lab.triton.load import Result, closed_loop, infer_target, stream_target
from tests.lab.triton.options import Options
from tests.lab.triton.unit import TritonUnit, install

DATA = Path(__file__).parents[1] / "data/telemetry/triton.jsonl.gz"
SCRIPTS = Path(__file__).parents[2] / "remote_scripts"
MODELS = ("cached", "curve", "echo", "flaky", "pipeline", "responses", "sequence", "stream")
STREAM = {"COUNT": 5, "FIRST_MS": 30, "DELAY_MS": 10}
PLACE = "/servers/triton"
SCRIPT = (
    "import sys; sys.path.insert(0, '/srv'); "
    "from remote_scripts import telemetry; from remote_scripts.call import Call; "
    "telemetry.main(Call({'interval': 0.25, 'full_every': 1, 'gpm': False}, sys.stdout.buffer))"
)


class Recorder(threading.Thread):
    """Keeps what the script says about the server, and what was sent until then."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.lines: list[dict[str, Any]] = []
        self.sent: dict[str, list[int]] = {}
        self.moment = "start"
        self._stream = stream

    def run(self) -> None:
        for raw in self._stream:
            line = json.loads(raw)
            told = line["doc"]["unavailable"].items()
            self.lines.append(
                {
                    "time": line["time"],
                    "mono": line["mono"],
                    "moment": self.moment,
                    "server": line["doc"]["servers"]["triton"],
                    "unavailable": {pointer: reason for pointer, reason in told if pointer.startswith(PLACE)},
                    "sent": {model: list(counts) for model, counts in self.sent.items()},
                }
            )

    def during(self, moment: str, model: str, load: Callable[[], Result]) -> None:
        """Run a load under a name, and be idle for a few ticks afterwards."""
        self.moment = moment
        result = load()
        time.sleep(0.6)  # what was read before the last answer is no idle moment
        counts = self.sent.setdefault(model, [0, 0])
        counts[0] += result.succeeded
        counts[1] += sum(result.failed.values())
        self.idle(f"after {moment}")

    def idle(self, moment: str) -> None:
        self.moment = moment
        time.sleep(0.8)


def main() -> None:
    with Machine("bookworm", binds={SCRIPTS: "/srv/remote_scripts"}) as machine:
        unit = install(machine, Options(load=MODELS, cache_bytes=1 << 20), models=MODELS)
        unit.start()
        command = ["ssh", "-F", str(machine.ssh_config), machine.name, f'python3 -c "{SCRIPT}"']
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            recorder = Recorder(process.stdout)
            recorder.start()
            try:
                while not recorder.lines or "success" not in json.dumps(recorder.lines[-1]):
                    time.sleep(0.1)
                record(recorder, unit)
            finally:
                process.terminate()
    DATA.parent.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(DATA, "wb", mtime=0) as file:
        file.writelines(json.dumps(line).encode() + b"\n" for line in recorder.lines)


def record(recorder: Recorder, unit: TritonUnit) -> None:
    api = unit.api

    def load(model: str, requests: int, connections: int, values: tuple[int, ...] = (0,), batch: int = 1) -> None:
        target = infer_target(api.address, api.http, model, values, batch)
        recorder.during(f"{model} {requests}", model, lambda: closed_loop(target, requests, connections))

    def stream(model: str, requests: int) -> None:
        target = stream_target(api.address, api.http, model, STREAM)
        recorder.during(f"{model} {requests}", model, lambda: closed_loop(target, requests, 6))

    recorder.idle("idle")
    load("echo", 2000, 12)
    load("curve", 60, 16)
    load("curve", 10, 4, batch=3)
    load("flaky", 30, 4, (0,))
    load("flaky", 20, 4, (1,))
    load("flaky", 10, 2, (2,))
    load("cached", 30, 1, (1, 2, 3))
    load("pipeline", 20, 4)
    stream("stream", 12)
    stream("responses", 24)
    unit.touch("echo")
    recorder.moment = "reload"
    api.load("echo")
    load("echo", 80, 8)
    recorder.moment = "unload"
    api.unload("flaky")
    api.wait_state("flaky", "UNAVAILABLE")
    recorder.idle("unloaded")
    recorder.moment = "load"
    api.load("flaky")
    recorder.idle("loaded")
    load("flaky", 12, 4, (0,))


if __name__ == "__main__":
    main()
