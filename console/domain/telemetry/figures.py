"""A model's figures: in the window, and on average since its statistics began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.domain.telemetry import batching, language
from console.domain.telemetry.batching import NO_TRAFFIC, Ahead, Counted
from console.domain.telemetry.counted import NOTHING, PATIENCE, Memory, between, since_start, unsettled
from console.domain.telemetry.merge import Document
from console.domain.telemetry.reasons import UNTOLD
from console.domain.telemetry.sample import Failures

AVERAGES = ("hit_rate", "mean_batch", "error_percent", "queue_ms", "compute_infer_ms", "request_ms")
FAILURES = {"rejected": "REJECTED", "cancelled": "CANCELED", "backend": "BACKEND", "other": "OTHER"}
"""Triton's reasons of failure, by the names of ``Failures``."""

NONE_SUCCEEDED = "no request succeeded in this window"
NONE_SINCE = "no traffic since the start"

_Told = tuple[float | None, str | None]


def window_figures(
    now: Document, ahead: Ahead | None, memory: Memory, mono: float, own: dict[str, str]
) -> dict[str, Any]:
    """The window's figures by the names of ``ModelSample``; those that are not to be had are left out or None.

    Args:
        now: The model's branch of the document.
        ahead: ``batching.ahead`` of it.
        memory: Where its windows begin.
        mono: This tick's CLOCK_BOOTTIME, seconds.
        own: Takes the reasons, but for what the document itself lacks.
    """
    before, seconds = memory.counters, mono - memory.mono
    figures: dict[str, Any] = language.window(now, before, seconds, own)
    window = between(now, before)
    if window is None:
        return figures
    figures["rps"] = (window.requests + window.failed) / seconds
    figures["inferences_per_s"] = window.inferences / seconds
    figures["executions_per_s"] = window.executions / seconds
    figures["error_percent"] = _put(own, "error_percent", _error_percent(window))
    figures["mean_batch"] = mean = _put(own, "mean_batch", batching.mean_batch(window))
    figures["fill_percent"] = _put(own, "fill_percent", batching.fill_percent(mean, now.get("max_batch_size")))
    if mean is None:
        own.setdefault("fill_percent", own.get("mean_batch", UNTOLD))
    figures["hit_rate"] = _put(own, "hit_rate", _hit_rate(now, window, ahead, memory, mono))
    if window.batches is not None:
        figures["window_batches"] = window.batches
    figures["window_failures"] = _window_failures(now, before)
    figures.update(_times(now, before, window, own))
    return figures


def averages(now: Document, own: dict[str, str]) -> dict[str, float | None]:
    """The same since the server's start or the model's last reload, from the cumulative counters."""
    figures: dict[str, float | None] = dict.fromkeys(AVERAGES)
    since = since_start(now)
    if since is None:
        return figures
    told: dict[str, str] = {}
    figures["error_percent"] = _put(told, "error_percent", _error_percent(since))
    figures["mean_batch"] = _put(told, "mean_batch", batching.mean_batch(since))
    none = batching.no_hit_rate(now)
    rate: _Told = (None, none) if none else batching.hit_rate(since, now.get("max_batch_size"))
    figures["hit_rate"] = _put(told, "hit_rate", rate)
    for name, value in _times(now, None, since, told).items():
        if name in figures:
            figures[name] = value
    for name, reason in told.items():
        own[name] = NONE_SINCE if reason in (NO_TRAFFIC, NONE_SUCCEEDED) else reason
    return figures


def _put(own: dict[str, str], name: str, told: _Told) -> float | None:
    value, reason = told
    if reason is not None:
        own[name] = reason
    return value


def _hit_rate(now: Document, window: Counted, ahead: Ahead | None, memory: Memory, mono: float) -> _Told:
    """Over the time since the counts last belonged together: mostly this window, sometimes more."""
    none = batching.no_hit_rate(now)
    if none is not None:
        return None, none
    longer = window if memory.settled is memory.counters else between(now, memory.settled)
    if longer is None:
        return None, None
    rate, reason = batching.hit_rate(longer, now.get("max_batch_size"), unsettled(now, ahead, memory))
    if reason == batching.UNSETTLED and mono - memory.settled_mono > PATIENCE:
        reason = batching.MISMATCH
    return rate, reason


def _error_percent(window: Counted) -> _Told:
    answered = window.requests + window.failed
    return (100 * window.failed / answered, None) if answered > 0 else (None, NO_TRAFFIC)


def _times(now: Document, before: Document | None, window: Counted, own: dict[str, str]) -> dict[str, float | None]:
    """Mean milliseconds per successful request; a cache hit waits, but never computes.

    Failed requests add to no time, and ``success.ns`` runs from arrival to answer (Triton's statistics extension).
    """
    none = NONE_SUCCEEDED if window.failed > 0 else NO_TRAFFIC
    executed = window.requests - window.cache_hits
    computed = batching.CACHED if window.requests > 0 else none
    first = NOTHING if before is None else before
    means: dict[str, float | None] = {}
    for name, counter, requests, reason in (
        ("queue_ms", "queue_ns", window.requests, none),
        ("request_ms", "success_ns", window.requests, none),
        ("compute_input_ms", "compute_input_ns", executed, computed),
        ("compute_infer_ms", "compute_infer_ns", executed, computed),
        ("compute_output_ms", "compute_output_ns", executed, computed),
    ):
        if counter not in now or (before is not None and counter not in before):
            continue
        if requests <= 0:
            own[name] = reason
        else:
            means[name] = (now[counter] - first.get(counter, 0)) / requests / 1e6
    return means


def _window_failures(now: Mapping[str, Any], before: Mapping[str, Any]) -> Failures:
    last, first = now.get("failures", NOTHING), before.get("failures", NOTHING)
    both = {name: last[word] - first[word] for name, word in FAILURES.items() if word in last and word in first}
    return Failures(**both)
