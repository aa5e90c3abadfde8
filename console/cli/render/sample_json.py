"""A sample as JSON, schema sample/1 (DESIGN.md 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from console.domain.telemetry.sample import SCHEMA, Sample
from console.remote.errors import RemoteError


def sample_document(sample: Sample) -> dict[str, Any]:
    """The sample: every figure a number or null, and the reasons of the nulls in ``unavailable``."""
    return {"schema": SCHEMA, **_plain(sample)}


def failure_document(droplet: str, error: Exception) -> dict[str, Any]:
    """What stands in a sample's place where there is none; its kind is "usage" where the question was wrong."""
    remote = error if isinstance(error, RemoteError) else None
    document: dict[str, Any] = {
        "kind": remote.kind.value if remote else "usage",
        "message": str(error),
        "hint": remote.hint if remote else None,
    }
    return {"schema": SCHEMA, "droplet": droplet, "error": document}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value]


@lru_cache(maxsize=64)
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
