"""The practice droplet as a whole: time goes on, and its files say so."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from console.demo import nvml_library, timeline, triton_answers
from console.demo.batching import Queue
from console.demo.catalogue import GIB, LLM, MODELS
from console.demo.gpu import Gpu
from console.demo.host import Host
from console.demo.in_flight import SLOTS
from console.demo.ports import Ports
from console.demo.real_triton import RealTriton
from console.demo.root import SYSTEMCTL, Root
from console.demo.timeline import Moment
from console.demo.triton import StandIn

STEP_S = 0.1
"""The longest step of the simulation."""
WARM_UP_S = 45.0
"""It has lived for so long when the console first looks: averages since the start are more than nothing."""
_FIRST_PID = 1201


@dataclass(slots=True)
class _Seen:
    """Figures at the end of the last step, to take differences."""

    busy: dict[str, float] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)


class World:
    """Everything that moves. Its methods may be called from any thread.

    Args:
        root: Where its files are written.
        ports: Where the stand-in for Triton is told to listen.
        models: What it serves.
        seed: Of all chance.
        clock: Seconds; never goes back.
    """

    def __init__(
        self,
        root: Root,
        ports: Ports,
        *,
        models: Collection[str] = tuple(MODELS),
        seed: int = 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._ports = ports
        self._lock = threading.Lock()
        self._clock = clock
        self._epoch_wall = time.time()
        self._epoch = clock()
        chance = random.Random(seed)  # noqa: S311 - a load, no secret
        self._now = -WARM_UP_S
        self._triton = StandIn(chance, self._now, models)
        self._gpu = Gpu()
        # Executions share the DRAM: their own shares at full speed add up to more than they get together.
        self._dram_scale = 0.62 if LLM in models else 0.95
        # Scripts have this machine's own clock: the practice droplet booted when it did.
        self._uptime = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
        self._host = Host(booted=self._epoch_wall - self._uptime)
        self._seen = _Seen()
        self._shown: list[int] = []
        self._left: int | None = None
        self._shown_life = 0
        self._real: RealTriton | None = None
        self._advance(0.0)

    def run(self, ended: threading.Event) -> None:
        """Keep the files true until ``ended``."""
        while not ended.wait(0.2):
            self.write()

    def write(self) -> None:
        """Bring the files up to now."""
        with self._lock:
            self._advance_to_now()
            moved = self._host.files(self._uptime + self._now)
            self._write_server(self._triton.lives, self._processes())
            state = self._gpu.state(self._holders())
        for path, text in moved.items():
            self._root.write(path, text)
        self._root.write(f"/{nvml_library.STATE}", json.dumps(state))

    def use(self, real: RealTriton) -> None:
        """A real Triton serves in the stand-in's place; the simulated one only tells what the GPU does."""
        self._real = real

    def moment(self) -> Moment:
        """The timeline's, now."""
        return timeline.at(self._clock() - self._epoch)

    def slower(self) -> float:
        """What executions are slowed down by, now."""
        return self._gpu.slower

    @property
    def listening(self) -> bool:
        """Whether the stand-in answers: as with Triton, only once its start is over."""
        with self._lock:
            self._advance_to_now()
            return self._triton.state == "running"

    def answer(self, method: str, path: str) -> tuple[int, Any]:
        """HTTP status and JSON document (or text) of a request to the stand-in; status 0: it has just died."""
        with self._lock:
            self._advance_to_now()
            return self._answer(method, path) if self._triton.state == "running" else (0, "")

    def infer(self, name: str) -> float | None:
        """Put a request of somebody's own in the queue.

        Returns:
            Seconds until its answer is due, or None where the model is not ready.
        """
        with self._lock:
            self._advance_to_now()
            one = self._triton.served.get(name)
            if one is None:
                return None
            self._triton.arrive(name, self._now)
            waits = one.pending
        batcher = MODELS[name].batcher
        if batcher is None:
            return 0.5
        return batcher.base_s + batcher.item_s + waits / batcher.max_batch * batcher.base_s

    def _answer(self, method: str, path: str) -> tuple[int, Any]:
        triton = self._triton
        if path == "/v2":
            return 200, triton_answers.server()
        if path == "/v2/health/live":
            return 200, ""
        if path == "/v2/health/ready":
            return (200 if triton.is_ready() else 400), ""
        if path == "/v2/models/stats":
            return 200, triton_answers.statistics(triton, self._wall)
        if path == "/metrics":
            return 200, triton_answers.metrics(triton, self._now)
        if path == "/v2/repository/index":
            return (200, triton_answers.index(triton)) if method == "POST" else (405, {"error": "POST is wanted"})
        return triton_answers.of_model(triton, path)

    def _wall(self, moment: float) -> float:
        return self._epoch_wall + moment

    def _advance_to_now(self) -> None:
        self._advance(self._clock() - self._epoch)

    def _advance(self, until: float) -> None:
        while self._now < until:
            step = min(STEP_S, until - self._now)
            self._now += step
            self._step(step)

    def _step(self, step: float) -> None:
        moment = timeline.at(self._now)
        triton, seen = self._triton, self._seen
        triton.advance(self._now, moment, slower=self._gpu.slower)
        idle, dram, requests = 1.0, 0.0, 0
        for name, one in triton.served.items():
            worked = min(max(one.busy_s - seen.busy.get(name, one.busy_s), 0.0) / step, 1.0)
            seen.busy[name] = one.busy_s
            if isinstance(one, Queue):
                full, kernels = min(one.mean_batch / one.batcher.max_batch, 1.0), worked
            else:
                full = one.running / SLOTS
                kernels = worked * (0.25 + 0.7 * full)  # between two tokens of a small batch it waits for the host
            idle *= 1 - kernels
            low, high = MODELS[name].dram
            dram += kernels * (low + (high - low) * full)
            counted = triton_answers.counted(one.counters)
            requests += max(counted - seen.counted.get(name, counted), 0)
            seen.counted[name] = counted
        self._gpu.advance(step, busy=1 - idle, dram=dram * self._dram_scale, air_blocked=moment.air_blocked)
        loading = moment.server == "starting" or moment.ocr == "LOADING"
        served = moment.load if moment.server == "running" else 0.0
        self._host.advance(step, requests=requests, load=served, loading=loading)

    def _pid(self, life: int) -> int:
        return _FIRST_PID + 400 * life

    def _processes(self) -> dict[int, tuple[str, list[str]]]:
        """The server's processes now: name and command line by process id, the server first."""
        if self._real is not None:
            pid = self._real.pid
            return {} if pid is None else {pid: ("tritonserver", list(self._real.arguments))}
        if self._triton.state == "dead":
            return {}
        pid = self._pid(self._triton.lives)
        worker = "VLLM::EngineCore"
        return {pid: ("tritonserver", self._arguments()), pid + 1: (worker, [worker])}

    def _holders(self) -> list[tuple[int, int]]:
        """Who holds memory on the GPU: the server, the language model's worker, and one that a dead server left."""
        triton, held = self._triton, []
        if triton.moment.orphan and self._left is not None:
            held.append((self._left, MODELS[LLM].memory))
        if triton.state == "running":
            sizes = [sum(MODELS[name].memory for name in triton.served if name != LLM) + GIB, MODELS[LLM].memory]
            pids = list(self._shown)
            if len(pids) == 1:
                sizes = [sum(sizes)]
            held += zip(pids, sizes, strict=False)
        return held

    def _write_server(self, life: int, processes: Mapping[int, tuple[str, list[str]]]) -> None:
        """The server's processes, and what systemd would say of its unit."""
        for gone in [pid for pid in self._shown if pid not in processes]:
            self._root.remove(f"/proc/{gone}")
            self._left = gone  # the last of them held the most
        pids = list(processes)
        for place, (pid, (name, arguments)) in enumerate(processes.items()):
            if pid not in self._shown:
                parent = pids[0] if place else 1
                began = self._now if self._shown_life or self._real is not None else -WARM_UP_S
                started = max(self._uptime + began, 0.0)
                self._root.process(pid, arguments, name=name, parent=parent, started=started)
        if pids:
            self._shown_life = life
        self._shown = pids
        down = not pids
        rows = {
            "Id": self._root.unit,
            "LoadState": "loaded",
            "ActiveState": "activating" if down else "active",
            "SubState": "auto-restart" if down else "running",
            "Result": "signal" if down else "success",
            "UnitFileState": "enabled",
            "FragmentPath": f"/etc/systemd/system/{self._root.unit}",
            "NRestarts": str(max(life - (not down), 0)),
            "ExecMainCode": "2" if down else "0",
            "ExecMainStatus": "9" if down else "0",
            "MainPID": str(pids[0] if pids else 0),
            "NeedDaemonReload": "no",
        }
        self._root.write(SYSTEMCTL, "".join(f"{key}={value}\n" for key, value in rows.items()))

    def _arguments(self) -> list[str]:
        return [
            "/opt/stand-in/bin/tritonserver",
            "--model-repository=/opt/stand-in/models",
            "--model-control-mode=explicit",
            "--http-address=127.0.0.1",
            f"--http-port={self._ports.http}",
            f"--metrics-port={self._ports.metrics}",
            "--allow-grpc=false",
            "--metrics-config=summary_latencies=true",
        ]
