"""Batching in figures, exactly as the words of the design mean them, and n/a with the reason otherwise.

Triton counts a request when it is answered and its execution right afterwards, one lock each: a reading taken
in between holds requests whose execution it does not know yet. ``ahead`` tells by how much, since every
execution also names its batch size: without failures the sum of the batch sizes must equal the inferences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

ENSEMBLE = "an ensemble executes nothing itself: its models batch"
SEQUENCE = "sequences share executions by slot, not by waiting together"
DECOUPLED = "a decoupled model's executions do not stand for requests"
IN_FLIGHT = "the backend batches in flight, where Triton's executions mean nothing"
NO_CONFIG = "whether the model batches is not known without its configuration"
NO_TRAFFIC = "no traffic in this window"
CACHED = "every request was answered from the response cache"
NO_SPLIT = "requests failed, and without the metrics it is not known which of them were executed"
UNSETTLED = "a batch was just being counted at the edge of this window"
MISMATCH = "executions and requests do not add up in this window"
FAILED_EXECUTED = f"{MISMATCH}: some that were cancelled or rejected may have been executed"

Ahead: TypeAlias = "tuple[int, int]"
"""Inferences and executions that a reading counts beyond its own batch sizes."""

UNSETTLED_SHARE = 0.005
"""A window whose requests are known to half a percent gives the hit rate: it is then right to half a point."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted in a window, or since the start."""

    requests: int
    """Successful ones."""
    failed: int
    executions: int
    inferences: int
    cache_hits: int
    backend_failures: int | None
    """Failures with reason BACKEND: they were executed. None where there are no metrics."""
    batches: Mapping[int, int] | None
    """Executions by batch size; None where Triton does not tell."""


def no_hit_rate(model: Mapping[str, Any]) -> str | None:
    """Why the hit rate means nothing for a model (by the document's words), or None where it means something."""
    scheduling = model.get("scheduling")
    if scheduling == "ensemble":
        return ENSEMBLE
    if model.get("in_flight_batching"):
        return IN_FLIGHT
    if model.get("decoupled"):
        return DECOUPLED
    if scheduling == "sequence_batching":
        return SEQUENCE
    return NO_CONFIG if scheduling is None else None


def hit_rate(counted: Counted, max_batch_size: int | None, unsettled: int = 0) -> tuple[float | None, str | None]:
    """The share of requests that rode along in another request's execution, in percent, or the reason for none.

    1 - executions / (successes - cache hits + failures with reason BACKEND). What cannot be (below 0, or more
    than ``max_batch_size`` allows) is not bent into range: the counts do not belong together, and that is said.

    Args:
        counted: The window.
        max_batch_size: The model's; None where it is not known.
        unsettled: How many inferences and executions at the window's edges are counted on one side only.
    """
    executed = counted.requests - counted.cache_hits
    if counted.backend_failures is not None:
        executed += counted.backend_failures
    elif counted.failed:
        return None, NO_SPLIT
    if executed <= 0 and counted.executions <= 0:
        return None, CACHED if counted.cache_hits > 0 else NO_TRAFFIC
    if unsettled > UNSETTLED_SHARE * executed:
        return None, UNSETTLED
    # An execution holds one request at least, and max_batch_size at most.
    together = 1 if max_batch_size == 0 else max_batch_size
    if executed < counted.executions or (together is not None and executed > counted.executions * together):
        if counted.failed:
            return None, FAILED_EXECUTED
        return None, UNSETTLED if unsettled or counted.batches is None else MISMATCH
    return 100 * (1 - counted.executions / executed), None


def ahead(reading: Mapping[str, Any]) -> Ahead | None:
    """By how many inferences, and how many executions, a reading is ahead of its own batch sizes.

    Both are 0 at rest where every request succeeded: each execution is counted together with its size, the sum
    of its requests' batch sizes. None where Triton does not tell the sizes.
    """
    batches = reading.get("batches", {} if reading.get("executions") == 0 else None)
    if batches is None or "inferences" not in reading or "executions" not in reading:
        return None
    executions = inferences = 0
    for size, (count, _) in batches.items():
        executions += count
        inferences += size * count
    return reading["inferences"] - inferences, reading["executions"] - executions


def mean_batch(counted: Counted) -> tuple[float | None, str | None]:
    """Inferences an execution, or the reason for none.

    By the batch sizes of the executions where Triton tells them: they are counted together with the executions,
    and hold the inferences of failed requests too, which ``inference_count`` leaves out.
    """
    if counted.batches is not None:
        executions = sum(counted.batches.values())
        if executions > 0:
            return sum(size * count for size, count in counted.batches.items()) / executions, None
    elif counted.executions > 0:
        if counted.failed:
            return None, "requests failed, and without the batch sizes it is not known how many were in each batch"
        return counted.inferences / counted.executions, None
    return None, CACHED if counted.cache_hits > 0 else NO_TRAFFIC


def fill_percent(mean: float | None, max_batch_size: int | None) -> tuple[float | None, str | None]:
    """Mean batch as a share of ``max_batch_size``, or the reason for none."""
    if max_batch_size == 0:
        return None, "the model takes no batches (max_batch_size 0)"
    if mean is None or max_batch_size is None:
        return None, None
    if mean > max_batch_size:
        return None, "batches larger than max_batch_size were executed: the configuration changed"
    return 100 * mean / max_batch_size, None


def histogram(now: Mapping[int, tuple[int, int]], before: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """Executions by batch size in a window: the difference of two readings, a size that is missing counting 0."""
    grown: dict[int, int] = {}
    for size, (count, _) in sorted(now.items()):
        delta = count - before[size][0] if size in before else count
        if delta:
            grown[size] = delta
    return grown
