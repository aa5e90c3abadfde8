"""A sample as JSON: ``sample/1``, what ``watch --json`` prints and recordings keep."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any

from console.domain.telemetry.sample import SCHEMA, Sample


def encode(sample: Sample) -> dict[str, Any]:
    """The sample as plain dicts, lists, numbers, texts and None, in the order of its fields.

    Every figure that is None has its reason in ``unavailable`` under its JSON Pointer in the very document that
    is given. Batch sizes, as keys of JSON objects, become text.
    """
    return {"schema": SCHEMA, **_part(sample)}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _part(part: object) -> dict[str, Any]:
    kind: type = type(part)
    return {name: _value(getattr(part, name)) for name in _names(kind)}


def _value(value: object) -> object:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return [_value(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _value(one) for key, one in value.items()}
    return _part(value)
