"""Models by name and condition, in Triton's own terms."""

from __future__ import annotations

from console.domain.telemetry.sample import ModelSample

NOT_SAID = "not loaded, or its config could not be read: Triton's log says which"
"""Its index names such a model without a state (facts/triton.md 4)."""


def model_name(model: ModelSample) -> str:
    """Name and version as Triton's own URLs have them; the name alone where the index gave no version."""
    return model.name if model.version in ("", "-") else f"{model.name}/{model.version}"


def condition(model: ModelSample) -> str:
    """Triton's state and reason of a model that is not ready."""
    reason = model.reason or (NOT_SAID if model.state == "UNKNOWN" else "")
    return f"{model.state}, {reason}" if reason else model.state
