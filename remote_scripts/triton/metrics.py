"""Triton's metrics page, merged by model and version, and what backends add to it.

Names: core/src/metrics.cc and metric_model_reporter.cc. A GPU model has one series for each of its GPUs and one
without gpu_uuid that stays at zero: all of them are summed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, isnan
from typing import Any, NamedTuple

from remote_scripts.files import cut
from remote_scripts.triton.json import MAX_COUNT
from remote_scripts.triton.prometheus import Page

_COUNTERS = {
    "nv_inference_request_success": "metrics_success",
    "nv_inference_exec_count": "metrics_executions",
    "nv_inference_pending_request_count": "pending",
}
_FAILURES = "nv_inference_request_failure"
_P95 = "nv_inference_request_summary_us"
_LOADED = "nv_model_load_duration_secs"
REASONS = ("REJECTED", "CANCELED", "BACKEND", "OTHER")
_TRITONS_OWN = (
    "nv_inference_",
    "nv_model_load_",
    "nv_cache_",
    "nv_gpu_",
    "nv_energy_",
    "nv_cpu_",
    "nv_pinned_memory_",
)
_FIRST_RESPONSE = ("nv_inference_first_response_histogram_ms_sum", "nv_inference_first_response_histogram_ms_count")
_IN_FLIGHT = ("nv_trt_llm_", "vllm:")
SERIES_LIMIT = 2_000
"""Custom series of one server (docs/wire.md 3)."""


class Target(NamedTuple):
    """Where a series belongs: a field of a model, or a custom series. ``model`` is "" where no label names one."""

    field: str
    model: str
    version: str
    key: str


@dataclass(slots=True)
class ModelMetrics:
    """One version of one model.

    Attributes:
        fields: the wire's, ``failures`` and ``series`` among them.
        p95: the values of its summaries that are numbers; several GPUs have one each.
        summaries: there are summaries, whatever their values.
        loaded: seconds that the last load took: another figure means another load.
        in_flight: its backend publishes the figures of in-flight batching.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    p95: list[float] = field(default_factory=list)
    summaries: bool = False
    loaded: float | None = None
    in_flight: bool = False


@dataclass(slots=True)
class Metrics:
    """A page. ``models`` is by model and version; "" is the version of a custom series that names none."""

    models: dict[tuple[str, str], ModelMetrics] = field(default_factory=dict)
    series: dict[str, float] = field(default_factory=dict)
    left_out: int = 0
    garbage: int = 0


class MetricsReader:
    """Reads the page of one server again and again."""

    def __init__(self) -> None:
        self._page = Page(classify)

    def read(self, body: bytes) -> Metrics:
        """What the page says now."""
        found = Metrics()
        models = found.models
        custom = 0
        for target, value in self._page.read(body):
            what, name, version, key = target
            if what == "series":
                if custom >= SERIES_LIMIT or not isfinite(value):
                    found.left_out += custom >= SERIES_LIMIT
                    continue
                custom += 1
                if not name:
                    found.series[key] = tidy(value)
                    continue
            model = models.get((name, version))
            if model is None:
                model = models[name, version] = ModelMetrics()
            _add(model, what, key, value)
        found.garbage = self._page.garbage
        return found


def classify(name: str, labels: dict[str, str], series: str) -> Target | None:
    """What a series means; None for what is not wanted.

    Of a custom histogram the buckets are left out: its sum and its count give the mean.
    """
    model = cut(labels.get("model") or labels.get("model_name") or "")
    version = cut(labels.get("version") or "")
    if name in _COUNTERS:
        return Target(_COUNTERS[name], model, version, "") if model and version else None
    if name == _FAILURES and model and version:
        # Before 24.08 there was no reason: such a count cannot be split.
        return Target("failures", model, version, labels["reason"]) if labels.get("reason") in REASONS else None
    if name == _P95 and model and version:
        return Target("p95", model, version, "") if labels.get("quantile") == "0.95" else None
    if name == _LOADED and model and version:
        return Target("loaded", model, version, "")
    if name.startswith(_TRITONS_OWN) and name not in _FIRST_RESPONSE:
        return None
    if name.endswith("_bucket") and "le" in labels:
        return None
    return Target("series", model, version, cut(series))


def _add(model: ModelMetrics, what: str, key: str, value: float) -> None:
    if what == "p95":
        model.summaries = True
        if not isnan(value):
            model.p95.append(value)
    elif not isfinite(value):
        return
    elif what == "series":
        model.fields.setdefault("series", {})[key] = tidy(value)
        model.in_flight = model.in_flight or key.startswith(_IN_FLIGHT)
    elif what == "loaded":
        model.loaded = value
    elif 0 <= value < MAX_COUNT:
        if what == "failures":
            failures = model.fields.setdefault("failures", {})
            failures[key] = failures.get(key, 0) + int(value)
        else:
            model.fields[what] = model.fields.get(what, 0) + int(value)


def tidy(value: float) -> float:
    """A whole number without its ".0", any other with nine digits: what follows is noise that costs bandwidth."""
    return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.9g}")
