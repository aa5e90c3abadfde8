"""The practice droplet's real Triton: its process, its model repository, and what the timeline does to both."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from console.demo.catalogue import IMAGES, MODELS, OCR, RERANKER
from console.demo.load import Load
from console.demo.ports import Ports
from console.demo.timeline import Moment

SLOWER, FULL = "slower", "gpu-memory-is-full"
SHARE = 0.4
"""Of the catalogue's traffic: the requests are real here, and cost this machine something."""
_SLACK = 0.85
"""Of the catalogue's times: what the real way of a request takes on top is not in them."""
_LOAD_S = 4.0
"""Seconds that the OCR model takes to load."""
_LOOK_S = 0.1
_PAUSE_S = 3.0
"""Seconds between two starts at least, where it ends by itself."""
_ASK_S = 20.0
_ENDS_WITH_US = 'exec 3<&0; (cat <&3 >/dev/null; kill -KILL 0) & exec "$@" <&- 3<&-'
"""Whatever ends this process, even SIGKILL, closes the server's input: then its whole group is killed."""
SHARED = Path("/dev/shm")  # noqa: S108 - where the Python backend puts what it shares with its processes
SERVED = tuple(name for name, model in MODELS.items() if model.batcher is not None)


class RealTriton:
    """One server, started again and again.

    Args:
        home: Where it is laid out (``console.demo.wheel``).
        folder: For its repository and its log.
        ports: Where it listens, on loopback.
        moment: The timeline's, now.
        slower: What executions are slowed down by, now.
    """

    def __init__(
        self, home: Path, folder: Path, ports: Ports, moment: Callable[[], Moment], slower: Callable[[], float]
    ) -> None:
        self._home = home
        self._folder = folder
        self._ports = ports
        self._moment = moment
        self._slower = slower
        self._prefix = f"{folder.parent.name}-"
        self._process: subprocess.Popen[bytes] | None = None
        self._asking: threading.Thread | None = None
        self._ocr = "UNAVAILABLE"
        self._reloads = 0
        self._begun = -_PAUSE_S
        _write_repository(folder)

    @property
    def pid(self) -> int | None:
        """Its process id; None while it is down."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def arguments(self) -> Sequence[str]:
        """Its command line."""
        ports = self._ports
        return [
            f"{self._home}/bin/tritonserver",
            f"--model-repository={self._folder}/models",
            f"--backend-directory={self._home}/backends",
            "--http-address=127.0.0.1",
            f"--http-port={ports.http}",
            f"--metrics-port={ports.metrics}",
            "--allow-grpc=false",
            "--model-control-mode=explicit",
            "--exit-on-error=false",
            "--allow-gpu-metrics=false",  # a real GPU is none of the demo's business, and DCGM writes to /var/log
            f"--backend-config=python,shm-region-prefix-name={self._prefix}",
            "--http-thread-count=8",
            "--metrics-config=summary_latencies=true",
            *(f"--load-model={name}" for name in SERVED if name != OCR),
        ]

    def run(self, ended: threading.Event) -> None:
        """Follow the timeline until ``ended``; then it is killed."""
        loads = [
            Load(
                self._ports.http,
                name,
                lambda name=name: self._rate(name),  # type: ignore[misc]
                lambda name=name: self._moment().failing if name == RERANKER else 0.0,  # type: ignore[misc]
                seed=place,
            )
            for place, name in enumerate(SERVED)
        ]
        for load in loads:
            threading.Thread(target=load.run, args=(ended,), daemon=True).start()
        while not ended.wait(_LOOK_S):
            self._follow(self._moment())
        self.kill()

    def ready(self) -> bool:
        """Whether it answers that it is ready."""
        connection = http.client.HTTPConnection("127.0.0.1", self._ports.http, timeout=1.0)
        try:
            connection.request("GET", "/v2/health/ready")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def start(self) -> None:
        """Start it, with all its models but the OCR one."""
        self._begun = time.monotonic()
        self._start()

    def kill(self) -> None:
        """End it as a crash would, its model processes included."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
            # What was killed could not take its shared memory away.
            for left in SHARED.glob(f"{self._prefix}*"):
                left.unlink(missing_ok=True)

    def _rate(self, name: str) -> float:
        moment = self._moment()
        serves = moment.server == "running" and (name != OCR or moment.ocr == "READY")
        return MODELS[name].peak_rate * SHARE * moment.load if serves else 0.0

    def _follow(self, moment: Moment) -> None:
        (self._folder / SLOWER).write_text(f"{self._slower():g}", encoding="ascii")
        full = self._folder / FULL
        if moment.orphan:
            full.touch()
        else:
            full.unlink(missing_ok=True)
        if moment.server == "dead":
            self.kill()
            self._ocr, self._reloads = "UNAVAILABLE", moment.reloads
        elif self.pid is None and time.monotonic() - self._begun >= _PAUSE_S:
            self.kill()
            self.start()
        elif moment.server == "running" and not (self._asking and self._asking.is_alive()):
            self._manage(moment)

    def _manage(self, moment: Moment) -> None:
        """One request to its repository at a time, each in a thread: a load takes as long as it takes."""
        wanted = "UNAVAILABLE" if moment.ocr_reason == "unloaded" else "READY"
        if moment.ocr_reason is not None and wanted == "READY":
            wanted = "FAILED"
        if self._ocr != wanted and (wanted != "READY" or moment.ocr in ("LOADING", "READY")):
            verb = "unload" if wanted == "UNAVAILABLE" else "load"
            self._ocr = wanted
            self._ask_for(OCR, verb)
        elif moment.reloads != self._reloads:
            self._reloads = moment.reloads
            if moment.reloads:
                os.utime(self._folder / "models" / IMAGES / "1/model.py")
                self._ask_for(IMAGES, "load")

    def _ask_for(self, name: str, verb: str) -> None:
        self._asking = threading.Thread(target=self._ask, args=(name, verb), daemon=True)
        self._asking.start()

    def _ask(self, name: str, verb: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._ports.http, timeout=_ASK_S)
        try:
            connection.request("POST", f"/v2/repository/models/{name}/{verb}", b"{}")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            time.sleep(_LOOK_S)  # it is not up yet, or just went: the next look tries what is still wanted
            if verb == "load" and name == OCR:
                self._ocr = "UNAVAILABLE"
        finally:
            connection.close()

    def _start(self) -> None:
        home = self._home
        _, libraries = (home / "ready").read_text("utf-8").splitlines()[:2]
        environment = {
            "PATH": f"{home}/python/bin:/usr/bin:/bin",
            "LD_LIBRARY_PATH": f"{home}/lib:{libraries}",
            "CUDA_VISIBLE_DEVICES": "",
            "HOME": str(self._folder),
            "TMPDIR": str(self._folder),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with (self._folder / "triton.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _ENDS_WITH_US, "triton", *self.arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._folder,
                start_new_session=True,
            )


def _write_repository(folder: Path) -> None:
    code = files("console.demo").joinpath("triton_model.py").read_text("utf-8")
    shutil.rmtree(folder / "models", ignore_errors=True)
    for name in SERVED:
        version = folder / "models" / name / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(code, encoding="utf-8")
        (version.parent / "config.pbtxt").write_text(_config(name, folder), encoding="utf-8")


def _config(name: str, folder: Path) -> str:
    batcher = MODELS[name].batcher
    assert batcher is not None  # noqa: S101 - SERVED has none without
    batching = ""
    if batcher.merges:
        patience = ""
        if batcher.patience_s is not None:
            limit = round(batcher.patience_s * 1e6)
            patience = f"default_queue_policy {{ timeout_action: REJECT default_timeout_microseconds: {limit} }}"
        delay = round(batcher.delay_s * 1e6)
        batching = f"dynamic_batching {{ max_queue_delay_microseconds: {delay} {patience} }}\n"
    parameters = {
        "base_s": batcher.base_s / SHARE * _SLACK,
        "item_s": batcher.item_s / SHARE * _SLACK,
        "load_s": _LOAD_S if name == OCR else 0.0,
        "slower": folder / SLOWER,
        "full": folder / FULL if name == OCR else "",
    }
    tensor = "data_type: TYPE_FP32, dims: [ 1 ]"
    return (
        f'backend: "python"\nmax_batch_size: {batcher.max_batch}\n'
        f'input [ {{ name: "INPUT", {tensor} }} ]\noutput [ {{ name: "OUTPUT", {tensor} }} ]\n'
        f"instance_group [ {{ kind: KIND_CPU, count: 1 }} ]\n{batching}"
        + "".join(
            f"parameters {{ key: {json.dumps(key)} value {{ string_value: {json.dumps(str(value))} }} }}\n"
            for key, value in parameters.items()
        )
    )
