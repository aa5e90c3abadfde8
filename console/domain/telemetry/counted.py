"""A model's readings, and the windows between them: what is remembered from tick to tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from console.domain.telemetry import batching
from console.domain.telemetry.batching import Ahead, Counted
from console.domain.telemetry.merge import Document
from console.domain.telemetry.rates import SHORT, SHORTEST
from console.domain.telemetry.resets import RELOADED, Offsets, counters_back
from console.domain.telemetry.sample import ModelSample

PATIENCE = 10.0
"""Seconds for which the hit rate's window waits for counts that settle; what does not by then never will."""
NEW = "the model has just become ready: a rate needs two samples"
NOTHING: Document = {}

_COUNTERS = ("success", "fail", "executions", "inferences")


@dataclass(slots=True)
class Memory:
    """What is remembered of one version of a model on one server: where its windows begin."""

    mono: float
    counters: Document
    settled_mono: float
    settled: Document
    """Where the hit rate's window begins: the last reading whose requests and executions belonged together."""
    rest: int | None
    """How far the inferences are ahead of the batch sizes while nothing is being counted: 0 until a request
    failed (its inferences are in its execution alone), then unknown until a window without any traffic tells."""
    settled_ahead: Ahead | None
    """``batching.ahead`` of ``settled``."""
    settled_off: int
    """What was counted on one side only in ``settled``."""
    offsets: Offsets = field(default_factory=Offsets)


def begin(reading: Document, mono: float) -> Memory:
    """Begin every window with this reading."""
    rest = 0 if reading.get("fail") == 0 else None
    ahead = batching.ahead(reading)
    memory = Memory(mono, reading, mono, reading, rest, ahead, _off(ahead, rest))
    memory.offsets.reloaded(reading, NOTHING)
    return memory


def _off(ahead: Ahead | None, rest: int | None) -> int:
    """What is counted on one side only in one reading, as far as that can be told."""
    if ahead is None:
        return 0
    inferences, executions = ahead
    return abs(executions) + (0 if rest is None else abs(inferences - rest))


def unsettled(reading: Document, ahead: Ahead | None, memory: Memory) -> int:
    """What is counted on one side only at the edges of the hit rate's window, which ends with this reading."""
    rest = memory.rest if reading.get("fail") == memory.counters.get("fail") else None
    off = _off(ahead, rest) + memory.settled_off
    before = memory.settled_ahead
    if (
        rest is None
        and ahead is not None
        and before is not None
        and reading.get("fail") == memory.settled.get("fail")
    ):
        off += abs(ahead[0] - before[0])
    return off


def window(reading: Document, mono: float, gap: str | None, memory: Memory | None) -> tuple[str | None, Memory]:
    """Why there is no window between the last reading and this one, if so, and the memory to go on with.

    Args:
        reading: The model's branch of the document, with its counters.
        mono: This tick's CLOCK_BOOTTIME, seconds.
        gap: A reason that holds for the whole server.
        memory: None where the model was not there before.
    """
    if gap == SHORT and memory is not None:
        return gap, memory
    if gap is None and memory is None:
        gap = NEW
    elif gap is None and memory is not None:
        seconds = mono - memory.mono
        if seconds < SHORTEST:
            return SHORT, memory
        reloaded = memory.offsets.reloaded(reading, memory.counters)
        gap = counters_back(reading, memory.counters) or (RELOADED if reloaded else None)
    if gap is not None or memory is None:
        return gap, begin(reading, mono)
    return None, memory


def move_on(reading: Document, ahead: Ahead | None, mono: float, memory: Memory, hit_rate: str | None) -> None:
    """Begin the next window with this reading.

    The hit rate's own window begins where requests and executions belonged together. Where they do not now, it
    waits, so that the next figure covers this window too.

    Args:
        reading: The model's branch of the document.
        ahead: ``batching.ahead`` of it.
        mono: This tick's CLOCK_BOOTTIME, seconds.
        memory: Is changed.
        hit_rate: Why this window has no hit rate, if so.
    """
    before = memory.counters
    memory.mono, memory.counters = mono, reading
    if reading.get("fail") != before.get("fail"):
        memory.rest = None
    elif _same(reading, before, ("success", "executions", "inferences")):
        # Nothing is counted piece by piece for as long as a window.
        memory.rest = memory.rest if ahead is None else ahead[0]
    off = _off(ahead, memory.rest)
    waits = hit_rate == batching.UNSETTLED and (off > 0 or memory.rest is None)
    if not waits or mono - memory.settled_mono > PATIENCE:
        memory.settled_mono, memory.settled = mono, reading
        memory.settled_ahead, memory.settled_off = ahead, off


def _same(now: Document, before: Document, names: tuple[str, ...]) -> bool:
    return all(now.get(name) == before.get(name) for name in names)


def between(now: Mapping[str, Any], before: Mapping[str, Any]) -> Counted | None:
    """What was counted from one reading to the next; None where a counter is not known in both."""
    for name in _COUNTERS:
        if name not in now or name not in before:
            return None
    failures, earlier = now.get("failures", NOTHING), before.get("failures", NOTHING)
    backend = failures["BACKEND"] - earlier["BACKEND"] if "BACKEND" in failures and "BACKEND" in earlier else None
    return Counted(
        requests=now["success"] - before["success"],
        failed=now["fail"] - before["fail"],
        executions=now["executions"] - before["executions"],
        inferences=now["inferences"] - before["inferences"],
        cache_hits=now.get("cache_hit", 0) - before.get("cache_hit", 0),
        backend_failures=backend,
        batches=_batches(now, before),
    )


def between_samples(first: ModelSample, last: ModelSample) -> Counted | None:
    """What was counted between any two samples of a model, such as before and after a change.

    None where a counter is not known in both, or is smaller in the second: the counting began anew in between.
    """
    names = ("requests", "failed", "executions", "inferences")
    grown = {}
    for name in names:
        before, now = getattr(first, name), getattr(last, name)
        if before is None or now is None or now < before:
            return None
        grown[name] = now - before
    backend, earlier = last.failures.backend, first.failures.backend
    batches = {size: count - first.batches.get(size, 0) for size, count in last.batches.items()}
    return Counted(
        **grown,
        cache_hits=(last.cache_hits or 0) - (first.cache_hits or 0),
        backend_failures=None if backend is None or earlier is None else backend - earlier,
        batches={size: count for size, count in batches.items() if count},
    )


def since_start(now: Mapping[str, Any]) -> Counted | None:
    """What was counted since the statistics began; None where a counter is not known.

    The metrics outlive a reload, so their BACKEND failures count only where they speak of the same failures.
    """
    for name in _COUNTERS:
        if name not in now:
            return None
    failures = now.get("failures", NOTHING)
    backend: int | None = None
    if now["fail"] == 0:
        backend = 0
    elif "BACKEND" in failures and sum(failures.values()) == now["fail"]:
        backend = failures["BACKEND"]
    return Counted(
        requests=now["success"],
        failed=now["fail"],
        executions=now["executions"],
        inferences=now["inferences"],
        cache_hits=now.get("cache_hit", 0),
        backend_failures=backend,
        batches=_batches(now, NOTHING),
    )


def _batches(now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[int, int] | None:
    """The batch sizes of a window; none where nothing was executed yet, unknown where Triton does not tell."""
    if "batches" not in now:
        return {} if now["executions"] == 0 else None
    return batching.histogram(now["batches"], before.get("batches", NOTHING))
