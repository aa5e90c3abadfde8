"""Models by name and condition, in Triton's own terms."""

from __future__ import annotations

from console.domain.telemetry.sample import ModelSample, ServerSample
from console.domain.words import figures as form

NOT_SAID = "not loaded, or its config could not be read: Triton's log says which"
"""Its index names such a model without a state (facts/triton.md 4)."""
UNLOADED = frozenset({"", "unloaded"})
"""Reasons with which Triton's index lists a model that somebody unloaded, or never loaded."""


def model_name(model: ModelSample) -> str:
    """Name and version as Triton's own URLs have them; the name alone where the index gave no version."""
    return model.name if model.version in ("", "-") else f"{model.name}/{model.version}"


def condition(model: ModelSample) -> str:
    """Triton's state and reason of a model that is not ready."""
    reason = model.reason or (NOT_SAID if model.state == "UNKNOWN" else "")
    return f"{model.state}, {reason}" if reason else model.state


def at_rest(model: ModelSample, server: ServerSample) -> bool:
    """True where Triton loads what it is told to, and nobody told it to load this one: no fault."""
    return (
        server.control_mode == "explicit"
        and model.state in ("UNKNOWN", "UNAVAILABLE")
        and (model.reason or "") in UNLOADED
    )


def missing(model: ModelSample, server: ServerSample) -> bool:
    """True where Triton loads every model of its repository and says nothing at all of this one."""
    return (
        server.state == "ready"
        and server.control_mode in ("none", "poll")
        and model.state == "UNKNOWN"
        and not model.reason
    )


def readiness(server: ServerSample) -> str | None:
    """How many are ready: "4 models ready", "3 of 4 models ready" where another should be; None if nobody knows."""
    if server.models_total is None:
        return None
    ready = server.models_ready or 0
    wanted = server.models_total - sum(at_rest(model, server) for model in server.models)
    models = "model" if wanted == 1 else "models"
    return f"{ready} {models} ready" if ready == wanted else f"{ready} of {wanted} {models} ready"


def inside(model: ModelSample) -> list[str]:
    """What is known of the backend's own batch, its answers and the p95, each figure with its name."""
    figures = (
        (model.running, "running", form.count),
        (model.waiting, "waiting", form.count),
        (model.kv_cache_percent, "KV cache", form.percent),
        (model.tokens_per_s, "tokens/s", form.number),
        (model.responses_per_s, "responses/s", form.number),
        (model.first_response_ms, "first response", form.milliseconds),
        (model.between_responses_ms, "between responses", form.milliseconds),
        (model.p95_ms, "p95", form.milliseconds),
    )
    return [f"{name} {write(value)}" for value, name, write in figures if value is not None]
