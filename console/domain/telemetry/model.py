"""One version of a model as a part of a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.domain.telemetry import batching, language
from console.domain.telemetry.counted import NOTHING, Memory, move_on, window
from console.domain.telemetry.figures import FAILURES, averages, window_figures
from console.domain.telemetry.merge import Document
from console.domain.telemetry.rates import NOT_BEFORE
from console.domain.telemetry.reasons import UNTOLD, Reasons
from console.domain.telemetry.sample import Failures, ModelSample

READY = "READY"
ENSEMBLE = "ensemble"

_SOURCES = {
    "requests": "success",
    "failed": "fail",
    "cache_hits": "cache_hit",
    "last_inference": "last_inference_ms",
    "rps": "success",
    "error_percent": "success",
    "inferences_per_s": "inferences",
    "executions_per_s": "executions",
    "hit_rate": "executions",
    "mean_batch": "executions",
    "fill_percent": "executions",
    "queue_ms": "queue_ns",
    "compute_input_ms": "compute_input_ns",
    "compute_infer_ms": "compute_infer_ns",
    "compute_output_ms": "compute_output_ns",
    "request_ms": "success_ns",
    "p95_ms": "p95_us",
    "responses_per_s": "responses",
    "first_response_ms": "responses",
    "between_responses_ms": "responses",
    "running": "series",
    "waiting": "series",
    "kv_cache_percent": "series",
    "tokens_per_s": "series",
}
_WINDOW = (
    "rps",
    "inferences_per_s",
    "executions_per_s",
    "hit_rate",
    "mean_batch",
    "fill_percent",
    "error_percent",
    "queue_ms",
    "compute_input_ms",
    "compute_infer_ms",
    "compute_output_ms",
    "request_ms",
    "responses_per_s",
    "first_response_ms",
    "between_responses_ms",
    "tokens_per_s",
)


@dataclass(frozen=True, slots=True)
class Place:
    """Which model it is, and where it stands."""

    name: str
    version: str
    pointer: str
    """In the sample."""
    place: str
    """In the document."""
    metrics: str | None
    """Why the server's metrics cannot be read, where the droplet says so."""


def model(
    now: Document, where: Place, mono: float, gap: str | None, memory: Memory | None, reasons: Reasons
) -> tuple[ModelSample, Memory | None]:
    """One model's part of a sample, and what to remember for the next.

    Args:
        now: The version's branch of the document.
        where: Its name and places.
        mono: This tick's CLOCK_BOOTTIME, seconds.
        gap: Why no window of this server has figures, if so.
        memory: What was remembered of this very model; None where it was not there, or not ready.
        reasons: Takes the reasons of what is not there.
    """
    state = now.get("state", "UNKNOWN")
    own: dict[str, str] = {}
    figures: dict[str, Any] = {}
    default = UNTOLD
    if "success" in now:
        gap, memory = window(now, mono, gap, memory)
        if gap is None:
            ahead = batching.ahead(now)
            figures = window_figures(now, ahead, memory, mono, own)
            move_on(now, ahead, mono, memory, own.get("hit_rate"))
    elif state == READY:
        gap = reasons.of(where.place, "success") or "the model's statistics are not known"
    else:
        gap = default = _not_ready(state, now.get("reason"))
        memory = None
    if gap is not None:
        _no_window(now, gap, own)
    if own.get("hit_rate") == batching.NO_CONFIG:
        why = reasons.of(where.place, "scheduling")
        own["hit_rate"] = f"{batching.NO_CONFIG}: {why}" if why else batching.NO_CONFIG
    since: dict[str, str] = {}
    sample = _sample(now, where, state, gap, figures, averages(now, since), own)
    _explain(sample, where, reasons, own, since, default)
    return sample, memory


def _no_window(now: Document, gap: str, own: dict[str, str]) -> None:
    """The reasons of the window's figures where there is no window; what never has a figure keeps saying so."""
    own.update(dict.fromkeys(_WINDOW, gap))
    if "success" in now:
        if not language.applies(now):
            own.update(dict.fromkeys(language.WINDOW, language.PLAIN))
        never = batching.no_hit_rate(now)
        if never is not None:
            own["hit_rate"] = never


def _not_ready(state: str, reason: str | None) -> str:
    return f"the model is {state}" + (f": {reason}" if reason else "")


def _sample(
    now: Document,
    where: Place,
    state: str,
    gap: str | None,
    figures: dict[str, Any],
    average: dict[str, float | None],
    own: dict[str, str],
) -> ModelSample:
    batches: Mapping[int, tuple[int, int]] = now.get("batches", NOTHING)
    failures = now.get("failures", NOTHING)
    last = now.get("last_inference_ms")
    if not last and now.get("success") == 0:
        own["last_inference"] = "no inference yet"
    p95 = now.get("p95_us")
    at_once = language.now(now, own)
    return ModelSample(
        name=where.name,
        version=where.version,
        state=state,
        reason=now.get("reason"),
        backend=now.get("backend"),
        max_batch_size=now.get("max_batch_size"),
        scheduling=now.get("scheduling"),
        decoupled=now.get("decoupled"),
        in_flight_batching=now.get("in_flight_batching"),
        response_cache=now.get("response_cache"),
        requests=now.get("success"),
        failed=now.get("fail"),
        executions=now.get("executions"),
        inferences=now.get("inferences"),
        cache_hits=now.get("cache_hit"),
        failures=Failures(**{name: failures.get(word) for name, word in FAILURES.items()}),
        batches={size: batches[size][0] for size in sorted(batches)},
        pending=now.get("pending"),
        last_inference=last / 1000 if last else None,
        gap=gap,
        average=average,
        p95_ms=None if p95 is None else p95 / 1000,
        series=now.get("series", NOTHING),
        running=at_once.get("running"),
        waiting=at_once.get("waiting"),
        kv_cache_percent=at_once.get("kv_cache_percent"),
        **figures,
    )


def _explain(
    sample: ModelSample,
    where: Place,
    reasons: Reasons,
    own: dict[str, str],
    since: dict[str, str],
    default: str,
) -> None:
    pointer, place = where.pointer, where.place
    metrics = where.metrics or default
    if where.metrics is not None:
        own.setdefault("pending", where.metrics)
        own.setdefault("p95_ms", where.metrics)
    reasons.explain(sample, pointer, place, _SOURCES, own, default)
    reasons.explain(sample.failures, f"{pointer}/failures", f"{place}/failures", FAILURES, NOTHING, metrics)
    in_window = sample.gap or (where.metrics or NOT_BEFORE)
    reasons.explain(
        sample.window_failures, f"{pointer}/window_failures", f"{place}/failures", FAILURES, NOTHING, in_window
    )
    for name, value in sample.average.items():
        if value is None:
            told = since.get(name) or reasons.of(place, _SOURCES[name]) or default
            reasons.found[f"{pointer}/average/{name}"] = told
