"""A droplet of numbers: it counts as Triton and the kernel do, and speaks docs/wire.md 3."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import Any

from console.domain.telemetry.builder import SampleBuilder
from console.domain.telemetry.sample import ModelSample, Sample

CONFIG: dict[str, Any] = {
    "backend": "python",
    "max_batch_size": 8,
    "scheduling": "dynamic_batching",
    "decoupled": False,
    "in_flight_batching": False,
    "response_cache": False,
}
FAILURES = ("REJECTED", "CANCELED", "BACKEND", "OTHER")


@dataclass
class FakeModel:
    """One version of one model. A request is counted when it is answered, its execution right afterwards."""

    config: dict[str, Any] = field(default_factory=lambda: dict(CONFIG))
    statistics: dict[str, int] = field(default_factory=dict)
    batches: dict[int, int] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FAILURES, 0))
    state: str = "READY"
    more: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reload()
        self.metrics = {"metrics_success": 0, "metrics_executions": 0}

    def reload(self) -> None:
        """The statistics begin anew, the metrics go on (seen on 2.51.0)."""
        names = ("success", "fail", "cache_hit", "cache_miss", "executions", "inferences", "success_ns", "fail_ns")
        times = ("queue_ns", "compute_input_ns", "compute_infer_ns", "compute_output_ns")
        self.statistics = dict.fromkeys((*names, *times), 0)
        self.batches = {}

    def restart(self) -> None:
        self.reload()
        self.metrics = dict.fromkeys(self.metrics, 0)
        self.failures = dict.fromkeys(FAILURES, 0)

    def answer(self, batch: int = 1) -> None:
        """One request is answered; its execution is not counted yet."""
        self.statistics["success"] += 1
        self.statistics["inferences"] += batch
        for name, milliseconds in (("success_ns", 10), ("queue_ns", 2), ("compute_infer_ns", 5)):
            self.statistics[name] += milliseconds * 1_000_000
        self.statistics["compute_input_ns"] += 1_000_000
        self.statistics["compute_output_ns"] += 2_000_000
        self.metrics["metrics_success"] += 1

    def count_execution(self, size: int) -> None:
        self.statistics["executions"] += 1
        self.batches[size] = self.batches.get(size, 0) + 1
        self.metrics["metrics_executions"] += 1

    def execute(self, *requests: int) -> None:
        """One execution of requests with these batch sizes."""
        for batch in requests:
            self.answer(batch)
        self.count_execution(sum(requests))

    def execute_failing(self, *requests: int) -> None:
        """A backend that raises: executed, and every request a failure."""
        for _ in requests:
            self.fail("BACKEND")
        self.count_execution(sum(requests))

    def fail(self, reason: str) -> None:
        self.statistics["fail"] += 1
        self.failures[reason] += 1

    def hit_cache(self) -> None:
        self.statistics["success"] += 1
        self.statistics["cache_hit"] += 1
        self.statistics["success_ns"] += 1_000_000
        self.metrics["metrics_success"] += 1

    def branch(self) -> dict[str, Any]:
        if self.state != "READY":
            return {"state": self.state, **self.more}
        branch: dict[str, Any] = {"state": "READY", **self.config, **self.statistics, **self.metrics}
        if self.batches:
            branch["batches"] = {str(size): [count, count * 5_000_000] for size, count in self.batches.items()}
        branch["failures"] = dict(self.failures)
        branch["pending"] = 0
        branch.update(self.more)
        return {key: value for key, value in branch.items() if value is not None}


@dataclass
class FakeDroplet:
    """The whole document, and the lines that bring it over."""

    models: dict[str, FakeModel] = field(default_factory=dict)
    gpus: dict[str, dict[str, Any]] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=lambda: {"how": "unit", "state": "ready", "pid": 77})
    unavailable: dict[str, str] = field(default_factory=dict)
    mono: float = 1000.0
    time: float = 1_700_000_000.0
    seq: int = -1
    full_every: int = 30
    sent: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.host.setdefault("boot_id", "boot-1")

    def document(self) -> dict[str, Any]:
        models = {name: {"1": model.branch()} for name, model in self.models.items()}
        document: dict[str, Any] = {
            "host": self.host,
            "driver": {"source": "nvml", "version": "550.54"},
            "gpus": self.gpus,
            "servers": {"triton": {**self.server, "models": models}},
            "unavailable": self.unavailable,
        }
        copied: dict[str, Any] = json.loads(json.dumps(document))
        return copied

    def line(self, seconds: float = 1.0, **over: Any) -> dict[str, Any]:
        """The next tick's line."""
        self.mono += seconds
        self.time += seconds
        self.seq += 1
        document = self.document()
        full = self.sent is None or self.seq % self.full_every == 0
        doc = document if full else difference(self.sent or {}, document)
        self.sent = copy.deepcopy(document)
        line = {"seq": self.seq, "time": self.time, "mono": self.mono, "full": full, "doc": doc}
        return {**line, **over}


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The merge patch (RFC 7396) from one document to the other."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = difference(before, value)
            if inner:
                patch[key] = inner
        elif value != before or type(value) is not type(before):
            patch[key] = value
    return patch


@dataclass
class Watched:
    """A fake droplet and the builder that follows it."""

    droplet: FakeDroplet
    builder: SampleBuilder = field(default_factory=lambda: SampleBuilder("lab"))
    stream: str = "one"

    def tick(self, seconds: float = 1.0, **over: Any) -> Sample:
        sample = self.builder.feed(
            self.droplet.line(seconds, **over), arrived=self.droplet.time, stream=self.stream
        )
        assert sample is not None, self.builder.problem
        return sample

    def model(self, seconds: float = 1.0, name: str = "echo") -> ModelSample:
        return model_of(self.tick(seconds), name)


def model_of(sample: Sample, name: str = "echo") -> ModelSample:
    return next(model for server in sample.servers for model in server.models if model.name == name)


def why(sample: Sample, figure: str, name: str = "echo") -> str:
    """The reason of a model's figure."""
    for order, server in enumerate(sample.servers):
        for number, model in enumerate(server.models):
            if model.name == name:
                return sample.unavailable[f"/servers/{order}/models/{number}/{figure}"]
    raise AssertionError(f"no model {name}")


def watch(**models: FakeModel) -> Watched:
    """A droplet with these models (an ``echo`` where none is given), one tick old."""
    watched = Watched(FakeDroplet(models=models or {"echo": FakeModel()}))
    watched.tick()
    return watched
