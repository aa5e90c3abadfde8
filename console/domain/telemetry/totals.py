"""A droplet's figures in one line: sums and means over its models and GPUs, or one model's own.

A mean over models is over requests, not over models: with traffic on one model alone it is that model's own figure.
Ensembles are left out, as they count beside the models they are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from console.domain.telemetry.sample import Failures, GpuSample, ModelSample, Sample

NO_SERVER = "no Triton server was found on this droplet"
NOT_READY = "no model is ready"
NO_GPU = "no GPU was found on this droplet"


class ModelKey(NamedTuple):
    """A version of a model on a server, or with an empty name all models of that server."""

    server: str
    name: str
    version: str

    @property
    def whole_server(self) -> bool:
        """All models of a server are meant."""
        return not self.name


@dataclass(frozen=True, slots=True)
class Totals:
    """Figures over all models and GPUs, or of one model and all GPUs; units as in ``Sample``.

    Every None has its reason in ``why`` under the field's name.
    """

    models: int = 0
    """Models that the figures are over: ready ones, ensembles left out."""
    rps: float | None = None
    hit_rate: float | None = None
    mean_batch: float | None = None
    fill_percent: float | None = None
    error_percent: float | None = None
    queue_ms: float | None = None
    input_ms: float | None = None
    infer_ms: float | None = None
    output_ms: float | None = None
    request_ms: float | None = None
    p95_ms: float | None = None
    """The highest of the models'."""
    pending: int | None = None
    failures: Failures = field(default_factory=Failures)
    """In the window."""
    batches: Mapping[int, int] = field(default_factory=dict)
    """Executions by batch size, in the window."""
    dram_percent: float | None = None
    """Mean over the GPUs that have it."""
    dram_gb_s: float | None = None
    """Sum over the GPUs."""
    dram_peak_gb_s: float | None = None
    utilization_percent: float | None = None
    memory_percent: float | None = None
    temperature_c: float | None = None
    """The highest."""
    power_w: float | None = None
    why: Mapping[str, str] = field(default_factory=dict)

    @property
    def compute_ms(self) -> float | None:
        """Input, inference and output together; None where one of them is."""
        if self.input_ms is None or self.infer_ms is None or self.output_ms is None:
            return None
        return self.input_ms + self.infer_ms + self.output_ms


class _Told(NamedTuple):
    """A model with its place in the sample."""

    model: ModelSample
    pointer: str


_MODEL_FIGURES = (
    "rps", "hit_rate", "mean_batch", "fill_percent", "error_percent", "queue_ms", "compute_input_ms",
    "compute_infer_ms", "compute_output_ms", "request_ms", "p95_ms", "pending",
)  # fmt: skip
_GPU_FIGURES = (
    "dram_percent", "dram_gb_s", "dram_peak_gb_s", "utilization_percent", "memory_used", "temperature_c", "power_w",
)  # fmt: skip
_OWN_NAMES = {
    "compute_input_ms": "input_ms",
    "compute_infer_ms": "infer_ms",
    "compute_output_ms": "output_ms",
    "memory_used": "memory_percent",
}


def totals(sample: Sample, only: ModelKey | None = None) -> Totals:
    """The figures of a sample.

    Args:
        sample: What is true about the droplet.
        only: The one model or server they are to be of; all models by default.
    """
    told = [one for one in _models(sample, only) if one.model.state == "READY"]
    why: dict[str, str] = {}
    models = [one.model for one in told]
    # A sum without one of its parts would be a lie, so then there is none.
    whole = all(model.rps is not None for model in models)
    of_models = {
        "rps": _sum(model.rps for model in models) if whole else None,
        "hit_rate": _mean(models, "hit_rate", _riders),
        "mean_batch": _mean(models, "mean_batch", lambda model: model.executions_per_s),
        "fill_percent": _mean(models, "fill_percent", lambda model: model.executions_per_s),
        "error_percent": _mean(models, "error_percent", lambda model: model.rps) if whole else None,
        "queue_ms": _mean(models, "queue_ms", _answered),
        "input_ms": _mean(models, "compute_input_ms", _answered),
        "infer_ms": _mean(models, "compute_infer_ms", _answered),
        "output_ms": _mean(models, "compute_output_ms", _answered),
        "request_ms": _mean(models, "request_ms", _answered),
        "p95_ms": max((model.p95_ms for model in models if model.p95_ms is not None), default=None),
    }
    pending = [model.pending for model in models if model.pending is not None]
    for name in _MODEL_FIGURES:
        own = _OWN_NAMES.get(name, name)
        if of_models.get(own) is None:
            why[own] = _why_models(sample, told, name, only)
    gpus = [gpu for gpu in sample.gpus if gpu.state == "ok"]
    of_gpus = _gpus(gpus)
    for name in _GPU_FIGURES:
        own = _OWN_NAMES.get(name, name)
        if of_gpus[own] is None:
            why[own] = _why_gpus(sample, name)
    if pending:
        why.pop("pending", None)
    return Totals(
        models=len(models),
        pending=sum(pending) if pending else None,
        failures=_failures(models),
        batches=_batches(models),
        why=why,
        **of_models,
        **of_gpus,
    )


def keys(sample: Sample) -> list[ModelKey]:
    """All model versions of a sample, in its order."""
    return [
        ModelKey(server.name, model.name, model.version) for server in sample.servers for model in server.models
    ]


def find(sample: Sample, key: ModelKey) -> tuple[ModelSample, str] | None:
    """The model of that key, and the JSON Pointer of its place."""
    return next(((one.model, one.pointer) for one in _models(sample, key)), None)


def _models(sample: Sample, only: ModelKey | None) -> Iterator[_Told]:
    for place, server in enumerate(sample.servers):
        if only is not None and server.name != only.server:
            continue
        for number, model in enumerate(server.models):
            if only is None or only.whole_server:
                wanted = model.scheduling != "ensemble"
            else:
                wanted = model.name == only.name and model.version == only.version
            if wanted:
                yield _Told(model, f"/servers/{place}/models/{number}")


def _gpus(gpus: list[GpuSample]) -> dict[str, float | None]:
    whole = [gpu for gpu in gpus if gpu.parent is None]
    used = _sum(gpu.memory_used for gpu in whole if gpu.memory_total)
    total = _sum(gpu.memory_total for gpu in whole if gpu.memory_used is not None)
    return {
        "dram_percent": _plain_mean(gpu.dram_percent for gpu in gpus),
        "dram_gb_s": _sum(gpu.dram_gb_s for gpu in gpus),
        "dram_peak_gb_s": _sum(gpu.dram_peak_gb_s for gpu in gpus if gpu.dram_gb_s is not None),
        "utilization_percent": _plain_mean(gpu.utilization_percent for gpu in gpus),
        "memory_percent": 100 * used / total if used is not None and total else None,
        "temperature_c": max((gpu.temperature_c for gpu in gpus if gpu.temperature_c is not None), default=None),
        "power_w": _sum(gpu.power_w for gpu in whole),
    }


def _answered(model: ModelSample) -> float | None:
    """Successful requests per second: what the times of a model are means over."""
    if model.rps is None:
        return None
    return model.rps * (1 - (model.error_percent or 0) / 100)


def _riders(model: ModelSample) -> float | None:
    """Requests per second that the hit rate is a share of: executions / (1 - rate) gives them back."""
    if model.executions_per_s is None or model.hit_rate is None or model.hit_rate >= 100:
        return model.rps
    return model.executions_per_s / (1 - model.hit_rate / 100)


def _sum(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) if there else None


def _plain_mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def _mean(models: list[ModelSample], name: str, weight: Callable[[ModelSample], float | None]) -> float | None:
    told = [(value, weight(model) or 0.0) for model in models if (value := getattr(model, name)) is not None]
    if len(told) == 1:
        return float(told[0][0])
    total = sum(share for _, share in told)
    return sum(value * share for value, share in told) / total if total > 0 else None


def _failures(models: list[ModelSample]) -> Failures:
    sums = {}
    for name in ("rejected", "cancelled", "backend", "other"):
        counts = [count for model in models if (count := getattr(model.window_failures, name)) is not None]
        sums[name] = sum(counts) if counts else None
    return Failures(**sums)


def _batches(models: list[ModelSample]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for model in models:
        for size, count in model.window_batches.items():
            sums[size] = sums.get(size, 0) + count
    return sums


def _why_models(sample: Sample, told: list[_Told], name: str, only: ModelKey | None) -> str:
    """One reason for several models: what all say, or what the busiest of them says, by its name."""
    if not sample.servers:
        return sample.unavailable.get("/servers", NO_SERVER)
    if not told:
        return _why_none(sample, only)
    reasons = {}
    for one in told:
        if getattr(one.model, name) is None:
            reason = sample.unavailable.get(f"{one.pointer}/{name}") or one.model.gap
            reasons[one.model.name] = (one.model.rps or 0.0, reason or "the droplet gave no reason")
    if not reasons:
        return "no traffic"
    said = {reason for _, reason in reasons.values()}
    if len(said) == 1:
        return said.pop()
    busiest = max(reasons, key=lambda model: reasons[model][0])
    return f"{busiest}: {reasons[busiest][1]}"


def _why_none(sample: Sample, only: ModelKey | None) -> str:
    for place, server in enumerate(sample.servers):
        if only is not None and server.name != only.server:
            continue
        if server.state != "ready":
            return f"Triton server {server.name} is {server.state}" + (
                f": {server.reason}" if server.reason else ""
            )
        found = sample.unavailable.get(f"/servers/{place}/models")
        if found and not server.models:
            return found
    return NOT_READY if only is None or only.whole_server else f"{only.name} is not ready"


def _why_gpus(sample: Sample, name: str) -> str:
    if not sample.gpus:
        return sample.unavailable.get("/gpus", NO_GPU)
    for place, gpu in enumerate(sample.gpus):
        if gpu.state == "ok" and (reason := sample.unavailable.get(f"/gpus/{place}/{name}")):
            return reason
    lost = next((gpu for gpu in sample.gpus if gpu.state != "ok"), None)
    if lost is not None:
        return f"GPU {lost.index} is {lost.state}" + (f": {lost.state_reason}" if lost.state_reason else "")
    return "the droplet gave no reason"
