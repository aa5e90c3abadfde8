"""Triton's JSON answers, read with suspicion: what listens on the port may be anything."""

from __future__ import annotations

import json
from typing import Any

from remote_scripts.files import cut

MAX_COUNT = 1 << 64
"""Triton's counters are unsigned 64-bit."""
_INTEGER_DIGITS = 20


def parse(body: bytes) -> Any:
    """The value in ``body``. Bytes that are no UTF-8 become replacement characters.

    Triton writes the name of a model's folder as its bytes are; one odd folder shall not hide all the other models.

    Raises:
        ValueError: it is no JSON, or is nested too deep.
    """
    try:
        return json.loads(body.decode("utf-8", "replace"), parse_int=_integer)
    except json.JSONDecodeError as error:
        raise ValueError("it is no JSON") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _integer(text: str) -> int:
    # int() takes quadratic time, and Python before 3.10.7 does not stop it. No counter has as many digits.
    return int(text) if len(text) <= _INTEGER_DIGITS else -1


def whole(value: object) -> int | None:
    """A counter: a JSON integer, or digits in a string as protobuf's JSON has it; None for anything else."""
    if type(value) is int:
        return value if 0 <= value < MAX_COUNT else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _INTEGER_DIGITS:
        return int(value) if int(value) < MAX_COUNT else None
    return None


def text(value: object) -> str | None:
    """A string that is not empty, cut to what may travel; None for anything else."""
    return cut(value) if isinstance(value, str) and value else None


def members(value: object) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def error_text(body: bytes) -> str:
    """The message of Triton's ``{"error": "…"}``; "" where there is none."""
    try:
        found = text(members(parse(body[:65536])).get("error"))
    except ValueError:
        return ""
    return found or ""
