"""Triton's statistics and repository index, as counters by model and version.

Statistics extension: server/docs/protocol/extension_statistics.md; semantics from core/src/infer_stats.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from remote_scripts.triton.json import members, parse, text, whole

NS_STEP = 10_000
"""Cumulative nanoseconds travel in steps of this, for the last digits are noise that costs bandwidth at each tick.
A mean over a window is then off by less than 10 µs over the number of requests in it."""
NO_VERSION = "-"
"""Stands where the index names a model and no version: its config cannot be read, or it never was loaded."""

ModelKey = tuple[str, str]
_DURATIONS = (
    ("success", "success_ns"),
    ("fail", "fail_ns"),
    ("queue", "queue_ns"),
    ("compute_input", "compute_input_ns"),
    ("compute_infer", "compute_infer_ns"),
    ("compute_output", "compute_output_ns"),
)
_COUNTS = ("success", "fail", "cache_hit", "cache_miss")


@dataclass(slots=True)
class Statistics:
    """By model and version, the wire's fields; ``batches`` and ``responses`` among them.

    Attributes:
        skipped: entries that could not be read.
        batch_sizes: how many sizes there are in all.
    """

    models: dict[ModelKey, dict[str, Any]] = field(default_factory=dict)
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What the repository index says: READY, UNAVAILABLE, LOADING, UNLOADING; UNKNOWN where it does not say."""

    state: str
    reason: str | None


def read_statistics(body: bytes) -> Statistics:
    """``GET /v2/models/stats``; only ready versions are in it.

    Raises:
        ValueError: the body is not what it should be.
    """
    entries = members(parse(body)).get("model_stats")
    if not isinstance(entries, list):
        raise ValueError("it has no model_stats")
    found = Statistics()
    for entry in entries:
        model = members(entry)
        name, version = text(model.get("name")), text(model.get("version"))
        if name is None or version is None:
            found.skipped += 1
        else:
            found.models[name, version] = _model(model)
    return found


def read_index(body: bytes) -> dict[ModelKey, IndexEntry]:
    """``POST /v2/repository/index``: every model that Triton knows of, ready or not.

    Raises:
        ValueError: the body is not what it should be.
    """
    entries = parse(body)
    if not isinstance(entries, list):
        raise ValueError("it is no list")
    found: dict[ModelKey, IndexEntry] = {}
    for entry in entries:
        model = members(entry)
        name = text(model.get("name"))
        if name is not None:
            version = text(model.get("version")) or NO_VERSION
            found[name, version] = IndexEntry(text(model.get("state")) or "UNKNOWN", text(model.get("reason")))
    return found


def _model(model: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    _put(fields, "executions", model.get("execution_count"))
    _put(fields, "inferences", model.get("inference_count"))
    last = whole(model.get("last_inference"))
    if last:  # 0: none yet
        fields["last_inference_ms"] = last
    parts = members(model.get("inference_stats"))
    for name in _COUNTS:
        _put(fields, name, members(parts.get(name)).get("count"))
    for name, key in _DURATIONS:
        nanoseconds = whole(members(parts.get(name)).get("ns"))
        if nanoseconds is not None:
            fields[key] = _rounded(nanoseconds)
    batches = _batches(model.get("batch_stats"))
    if batches:
        fields["batches"] = batches
    responses = _responses(members(model.get("response_stats")))
    if responses:
        fields["responses"] = responses
    return fields


def _batches(entries: object) -> dict[str, list[int]]:
    """Executions by their total batch size. The count stands in each compute_*, equal in all three."""
    found: dict[str, list[int]] = {}
    for entry in entries if isinstance(entries, list) else ():
        batch = members(entry)
        infer = members(batch.get("compute_infer"))
        size, count, nanoseconds = whole(batch.get("batch_size")), whole(infer.get("count")), whole(infer.get("ns"))
        if size and count is not None:
            found[str(size)] = [count, _rounded(nanoseconds or 0)]
    return found


def _responses(stats: dict[str, Any]) -> dict[str, int]:
    """Sums over the responses of decoupled models; the one with the key "0" is each request's first.

    compute_infer counts every response, failed and empty ones too; a cancelled one is in none of these.
    """
    if not stats:
        return {}
    found = dict.fromkeys(
        ("count", "success", "fail", "empty", "compute_infer_ns", "compute_output_ns", "first_count", "first_ns"), 0
    )
    for index, value in stats.items():
        response = members(value)
        infer, output = members(response.get("compute_infer")), members(response.get("compute_output"))
        count = whole(infer.get("count")) or 0
        infer_ns, output_ns = whole(infer.get("ns")) or 0, whole(output.get("ns")) or 0
        found["count"] += count
        found["compute_infer_ns"] += infer_ns
        found["compute_output_ns"] += output_ns
        for key, name in (("success", "success"), ("fail", "fail"), ("empty", "empty_response")):
            found[key] += whole(members(response.get(name)).get("count")) or 0
        if index == "0":
            found["first_count"], found["first_ns"] = count, infer_ns + output_ns
    for key in ("compute_infer_ns", "compute_output_ns", "first_ns"):
        found[key] = _rounded(found[key])
    return found


def _put(fields: dict[str, Any], key: str, value: object) -> None:
    number = whole(value)
    if number is not None:
        fields[key] = number


def _rounded(nanoseconds: int) -> int:
    return nanoseconds - nanoseconds % NS_STEP
