"""Figures as people read them: a few digits, the unit, and "n/a" with its reason noted for below.

Rounding never turns something into nothing or everything: 99.97 % is not shown as 100 %, nor 0.02 % as 0 %.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.domain.telemetry.sample import Sample


NA = "n/a"
UNEXPLAINED = "the droplet gave no reason"
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def number(value: float) -> str:
    """Three significant digits or the whole number: 0.123, 9.87, 62.5, 812, 12,345."""
    size = abs(value)
    if size >= 999.5:
        return f"{value:,.0f}" if size < 1e9 else f"{value:.2e}"
    if size >= 99.95:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.0995 or value == 0 else f"{value:.3f}" if size >= 0.0005 else f"{value:.0e}"


def percent(value: float) -> str:
    """One decimal: "87.5 %"; "<0.1 %" and ">99.9 %" where rounding would lie."""
    if 0 < value < 0.05:
        return "<0.1 %"
    if 99.95 <= value < 100:
        return ">99.9 %"
    return f"{value:.1f} %"


def count(value: float) -> str:
    """A whole number: "3", "12,345"."""
    return f"{value:,.0f}"


def whole_percent(value: float) -> str:
    """No decimals, for what is known no better."""
    return f"{value:.0f} %"


def milliseconds(value: float) -> str:
    """From microseconds to seconds."""
    if value >= 999.5:
        return f"{number(value / 1000)} s"
    return f"{number(value)} ms" if value >= 0.0995 or value == 0 else f"{value * 1000:.0f} µs"


def size(value: float) -> str:
    """Bytes in binary units, as memory and disks are thought of."""
    return _scaled(value, 1024, _BINARY)


def rate(value: float) -> str:
    """Bytes per second in decimal units, as lines are thought of."""
    return f"{_scaled(value, 1000, _DECIMAL)}/s"


def share(used: float, total: float) -> str:
    """Both in the total's unit: "61.2 of 80.0 GiB"."""
    power = _power(total, 1024, len(_BINARY))
    unit = 1024.0**power
    return f"{used / unit:.1f} of {total / unit:.1f} {_BINARY[power]}"


def duration(value: float) -> str:
    """The two largest units: "12 d 4 h", "3 min 5 s"."""
    left = int(value)
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2])


class Figures:
    """A sample's figures as text. What is not to be had is "n/a", and its reason is kept for ``reasons``."""

    def __init__(self, sample: Sample) -> None:
        self._unavailable = sample.unavailable
        self._reasons: dict[str, dict[str, list[str]]] = {}

    def show(
        self,
        value: float | None,
        form: Callable[[float], str],
        pointer: str,
        what: str,
        *,
        of: str = "",
        otherwise: str | None = None,
    ) -> str:
        """One figure.

        Args:
            value: The figure, or None.
            form: Writes it.
            pointer: Where it stands in the sample (RFC 6901).
            what: What it is, for the line that explains the n/a.
            of: Whose figure it is, likewise: a GPU, a model.
            otherwise: The reason where the sample gives none.
        """
        if value is not None:
            return form(value)
        self.note(self.why(pointer, otherwise), what, of)
        return NA

    def why(self, pointer: str, otherwise: str | None = None) -> str:
        """Why nothing stands at a place: its own reason, or the nearest above it."""
        while pointer:
            if pointer in self._unavailable:
                return self._unavailable[pointer]
            pointer = pointer.rpartition("/")[0]
        return otherwise or UNEXPLAINED

    def note(self, reason: str, what: str, of: str = "") -> None:
        """Keep a reason for below."""
        named = self._reasons.setdefault(reason, {}).setdefault(of, [])
        if what not in named:
            named.append(what)

    def reasons(self) -> list[str]:
        """One sentence for each reason, in the order they came up; owners of the same figures stand together."""
        return [f"{'; '.join(_owners(named))}: n/a, because {reason}" for reason, named in self._reasons.items()]


def _owners(named: dict[str, list[str]]) -> list[str]:
    """``{"GPU 0": ["DRAM", "GB/s"], "GPU 1": ["DRAM", "GB/s"]}`` to ``["DRAM, GB/s of GPU 0, GPU 1"]``."""
    together: dict[tuple[str, ...], list[str]] = {}
    for of, figures in named.items():
        together.setdefault(tuple(figures), []).append(of)
    return [", ".join(figures) + (f" of {_list(of)}" if of != [""] else "") for figures, of in together.items()]


def _list(named: list[str]) -> str:
    shown = named if len(named) <= 8 else [*named[:7], f"{len(named) - 7} more"]
    return ", ".join(shown)


def _scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    power = _power(value, base, len(units))
    return f"{value:.0f} {units[0]}" if power == 0 else f"{value / base**power:.1f} {units[power]}"


def _power(value: float, base: int, count: int) -> int:
    power = 0
    while value >= base and power < count - 1:
        value /= base
        power += 1
    return power
