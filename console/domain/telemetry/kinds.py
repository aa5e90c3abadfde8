"""What one value on the wire may be: each kind takes what arrived and gives the value, or refuses it in words.

The peer is not trusted: a count is a whole number that is not negative, text is cut and made printable, a
percent lies between 0 and 100. Nothing is bent into shape: a figure that cannot be true is left out.
"""

from __future__ import annotations

from typing import Any

from console.domain.telemetry.sample import GpuHolder
from console.domain.telemetry.text import printable

MAX_COUNT = 1 << 64
"""Triton's counters are unsigned 64-bit; what is beyond is no counter."""
MAX_NUMBER = 1e20
"""Compared with, never converted to: an integer of 4,000 digits is no float. Nothing compares with NaN."""
MAX_HOLDERS = 256
MAX_WORDS = 32
MAX_BATCH_SIZE = 1 << 31
"""``max_batch_size`` is a signed 32-bit number in Triton's model configuration."""


class RefusedError(ValueError):
    """A value that cannot stand where it came; its text is the reason, ready to be shown after "n/a, because"."""


def text(value: object) -> str:
    """Printable text of at most 512 characters."""
    if isinstance(value, str):
        return printable(value)
    raise _wrong(value, "text")


def flag(value: object) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise _wrong(value, "true or false")


def count(value: object) -> int:
    """A whole number from 0 to 2^64, as a JSON integer or a JSON number without a fraction."""
    if type(value) is int and 0 <= value < MAX_COUNT:
        return value
    if type(value) is float and 0 <= value < MAX_COUNT and value.is_integer():
        return int(value)
    raise _wrong(value, "a count")


def number(value: object) -> float:
    """A number that is not negative. An integer stays one, so that nothing is rounded away."""
    if type(value) in (int, float) and 0 <= value <= MAX_NUMBER:  # type: ignore[operator]
        return value  # type: ignore[return-value]
    raise _wrong(value, "a number")


def signed(value: object) -> float:
    """A number, such as a temperature."""
    if type(value) in (int, float) and -MAX_NUMBER <= value <= MAX_NUMBER:  # type: ignore[operator]
        return value  # type: ignore[return-value]
    raise _wrong(value, "a number")


def percent(value: object) -> float:
    """A number from 0 to 100."""
    if type(value) in (int, float) and 0 <= value <= 100:  # type: ignore[operator]
        return value  # type: ignore[return-value]
    raise _wrong(value, "a percentage from 0 to 100")


def words(value: object) -> tuple[str, ...]:
    """A list of texts, 32 at most."""
    if isinstance(value, list) and len(value) <= MAX_WORDS:
        return tuple(text(word) for word in value)
    raise _wrong(value, f"a list of at most {MAX_WORDS} words")


def batch(value: object) -> tuple[int, int]:
    """One batch size's ``[executions, compute_infer nanoseconds]``."""
    if isinstance(value, list) and len(value) == 2:
        return count(value[0]), count(value[1])
    raise _wrong(value, "a pair of counts")


def batch_size(key: str) -> int:
    """The key of one batch size: a whole number above 0, written in digits."""
    if key.isascii() and key.isdigit() and len(key) <= 10 and 0 < int(key) < MAX_BATCH_SIZE:
        return int(key)
    raise RefusedError("the droplet sent a batch size that is no number")


def holders(value: object) -> tuple[GpuHolder, ...]:
    """Who holds memory on a GPU, 256 holders at most."""
    if isinstance(value, list) and len(value) <= MAX_HOLDERS:
        return tuple(_holder(entry) for entry in value)
    raise _wrong(value, f"a list of at most {MAX_HOLDERS} processes")


def _holder(value: object) -> GpuHolder:
    if not isinstance(value, dict):
        raise _wrong(value, "a process")
    fields: dict[str, Any] = value
    memory = fields.get("memory")
    names = {
        key: text(fields[key]) for key in ("container", "unit", "server", "model") if fields.get(key) is not None
    }
    return GpuHolder(
        pid=count(fields.get("pid")),
        process=text(fields.get("process", "")),
        memory=None if memory is None else count(memory),
        orphan=flag(fields.get("orphan", False)),
        **names,
    )


def _wrong(value: object, wanted: str) -> RefusedError:
    if isinstance(value, bool):
        got = "true or false"
    elif isinstance(value, (int, float)):
        got = "a number that cannot be right"
    else:
        got = "text" if isinstance(value, str) else "an object or a list" if value is not None else "nothing"
    return RefusedError(f"the droplet sent {got} where {wanted} belongs")
