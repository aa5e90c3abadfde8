"""The document's ``servers``: each Triton server with its models, and the sums over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from console.domain.telemetry.batching import NO_TRAFFIC
from console.domain.telemetry.counted import NOTHING, Memory
from console.domain.telemetry.merge import Document, point
from console.domain.telemetry.model import ENSEMBLE, READY, Place, model
from console.domain.telemetry.reasons import UNTOLD, Reasons
from console.domain.telemetry.resets import RESTARTED, server_restarted
from console.domain.telemetry.sample import ModelSample, ServerSample
from console.domain.telemetry.text import printable

_SOURCES = {"models_ready": "models", "models_total": "models", "rps": "models", "error_percent": "models"}
NO_COMMAND_LINE = "the server's command line could not be read"
_IDENTITY = ("pid", "started", "restarts")


@dataclass(slots=True)
class ServerMemory:
    """What is remembered of a server between ticks."""

    identity: Document
    """Its process id, start and restarts, as last known."""
    models: dict[tuple[str, str], Memory] = field(default_factory=dict)
    """By the raw name and version."""


def servers(
    found: Mapping[str, Document],
    memories: Mapping[str, ServerMemory],
    mono: float,
    gap: str | None,
    reasons: Reasons,
) -> tuple[tuple[ServerSample, ...], dict[str, ServerMemory]]:
    """The servers' part of a sample, by name, and what to remember for the next.

    Args:
        found: The document's ``servers``.
        memories: What was remembered, by the document's name.
        mono: This tick's CLOCK_BOOTTIME, seconds.
        gap: Why no window of this tick has figures, if so.
        reasons: Takes the reasons of what is not there.
    """
    reasons.pass_on("/servers", "/servers")
    samples: list[ServerSample] = []
    remembered: dict[str, ServerMemory] = {}
    for number, name in enumerate(sorted(found)):
        sample, remembered[name] = _server(number, name, found[name], memories.get(name), mono, gap, reasons)
        samples.append(sample)
    return tuple(samples), remembered


def _server(
    number: int,
    name: str,
    now: Document,
    memory: ServerMemory | None,
    mono: float,
    gap: str | None,
    reasons: Reasons,
) -> tuple[ServerSample, ServerMemory]:
    place = point("/servers", name)
    pointer = f"/servers/{number}"
    if memory is None:
        memory = ServerMemory({})
    elif gap is None and server_restarted(now, memory.identity):
        gap = RESTARTED
    memory.identity = {**memory.identity, **{key: now[key] for key in _IDENTITY if key in now}}
    models = _models(now, memory, mono, gap, reasons, pointer, place)
    own: dict[str, str] = {}
    sums = _sums(models, gap, own) if "models" in now else {}
    if now.get("how") == "docker":
        own["unit"] = "it runs in a container"
    elif "how" in now:
        own["container"] = "it does not run in a container"
    if now.get("state") == "ready":
        own["control_mode"] = NO_COMMAND_LINE
    sample = ServerSample(
        name=printable(name),
        state=now.get("state", "unreachable"),
        reason=now.get("reason"),
        how=now.get("how"),
        unit=now.get("unit"),
        container=now.get("container"),
        pid=now.get("pid"),
        started=now.get("started"),
        restarts=now.get("restarts"),
        version=now.get("version"),
        http=now.get("http"),
        grpc=now.get("grpc"),
        metrics=now.get("metrics"),
        control_mode=now.get("control_mode"),
        models=models,
        series=now.get("series", NOTHING),
        **sums,
    )
    for name_of_list in ("models", "series"):
        reasons.pass_on(f"{pointer}/{name_of_list}", f"{place}/{name_of_list}")
    reasons.explain(sample, pointer, place, _SOURCES, own, _default(sample))
    return sample, memory


def _default(sample: ServerSample) -> str:
    if sample.state == "ready":
        return UNTOLD
    return f"the server is {sample.state}" + (f": {sample.reason}" if sample.reason else "")


def _models(
    now: Document, memory: ServerMemory, mono: float, gap: str | None, reasons: Reasons, pointer: str, place: str
) -> tuple[ModelSample, ...]:
    """Every version of every model, by name and version; what is not there any more is forgotten.

    A server that did not tell its models at all (no answer in time, say) has not lost them: the next windows
    reach back to when it last did, unless it is another process by then.
    """
    if "models" not in now:
        return ()
    metrics = None if "metrics" in now else reasons.of(place, "metrics")
    found: Mapping[str, Mapping[str, Document]] = now["models"]
    samples: list[ModelSample] = []
    remembered: dict[tuple[str, str], Memory] = {}
    for name in sorted(found):
        versions = found[name]
        for version in sorted(versions, key=_by_number):
            where = Place(
                name=printable(name),
                version=printable(version),
                pointer=f"{pointer}/models/{len(samples)}",
                place=point(point(f"{place}/models", name), version),
                metrics=metrics,
            )
            key = (name, version)
            sample, kept = model(versions[version], where, mono, gap, memory.models.get(key), reasons)
            if kept is not None:
                remembered[key] = kept
            samples.append(sample)
    memory.models = remembered
    return tuple(samples)


def _by_number(version: str) -> tuple[int, str]:
    return (
        (int(version), "") if version.isascii() and version.isdigit() and len(version) < 20 else (1 << 64, version)
    )


def _sums(models: tuple[ModelSample, ...], gap: str | None, own: dict[str, str]) -> dict[str, Any]:
    """The sums over the models: a sum without one of its parts would be a lie, so then there is none."""
    ready = [sample for sample in models if sample.state == READY]
    sums: dict[str, Any] = {"models_ready": len(ready), "models_total": len(models)}
    served = [sample for sample in ready if sample.scheduling != ENSEMBLE]
    without = next((sample for sample in served if sample.rps is None), None)
    if not served:
        reason = "no model is ready"
    elif without is not None:
        reason = gap or f"{without.name}: {without.gap or 'its requests are not known'}"
    else:
        sums["rps"] = rps = sum(sample.rps or 0.0 for sample in served)
        if rps > 0:
            failed = sum((sample.error_percent or 0.0) * (sample.rps or 0.0) for sample in served)
            sums["error_percent"] = failed / rps
            return sums
        own["error_percent"] = NO_TRAFFIC
        return sums
    own["rps"] = own["error_percent"] = reason
    return sums
