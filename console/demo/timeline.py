"""What happens on the practice droplet, second by second, in a loop: calm, peak, trouble.

Each trouble is one that people meet: requests that fail, a GPU that gets too hot, a model that is loaded anew, a
server that dies and leaves its memory behind.
"""

from __future__ import annotations

from dataclasses import dataclass

LOOP = 120.0
"""Seconds."""
_OCR_LOADS, _OCR_READY = 12.0, 18.0
_PEAK, _PEAK_ENDS, _RAMP = 28.0, 98.0, 6.0
_FAILING, _FAILING_ENDS = 58.0, 76.0
_AIR_BLOCKED, _AIR_FREE = 68.0, 88.0
_RELOAD = 92.0
_CRASH, _STARTS, _SERVES = 98.0, 100.5, 105.0
_ORPHAN_ENDS, _OCR_RETRY, _OCR_BACK = 111.0, 113.0, 117.0


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of the loop.

    Attributes:
        phase: "calm", "peak" or "trouble", for people.
        load: How much of the peak's traffic arrives, 0 to 1.
        failing: Share of the reranker's executions that fail.
        air_blocked: The GPU's cooling is in trouble.
        server: "running", "dead", "starting".
        reloads: How often the image model was loaded anew since the loop began.
        ocr: Triton's word for the state of the OCR model: "READY", "LOADING", "UNAVAILABLE".
        ocr_reason: Why it is not ready.
        orphan: A dead server's worker still holds GPU memory.
    """

    phase: str
    load: float
    failing: float
    air_blocked: bool
    server: str
    reloads: int
    ocr: str
    ocr_reason: str | None
    orphan: bool


def at(second: float) -> Moment:
    """The moment ``second`` seconds after the demo's start; before it, the loop's calm beginning."""
    into = second % LOOP if second >= 0 else 0.0
    ocr, reason = _ocr(into, first=second < LOOP)
    return Moment(
        phase=_phase(into),
        load=_load(into),
        failing=0.12 if _FAILING <= into < _FAILING_ENDS else 0.0,
        air_blocked=_AIR_BLOCKED <= into < _AIR_FREE,
        server="dead" if _CRASH <= into < _STARTS else "starting" if _STARTS <= into < _SERVES else "running",
        reloads=int(into >= _RELOAD),
        ocr=ocr,
        ocr_reason=reason,
        orphan=_CRASH <= into < _ORPHAN_ENDS,
    )


def _phase(into: float) -> str:
    if into < _PEAK:
        return "calm"
    return "peak" if into < _FAILING else "trouble"


def _load(into: float) -> float:
    up = min(max((into - _PEAK) / _RAMP, 0.0), 1.0)
    down = min(max((into - _PEAK_ENDS) / _RAMP, 0.0), 1.0)
    return 0.1 + 0.9 * (up - down)


def _ocr(into: float, *, first: bool) -> tuple[str, str | None]:
    if _STARTS <= into < _OCR_RETRY:
        return "UNAVAILABLE", "simulated: CUDA out of memory, 30 GiB are held by a process that has ended"
    if _OCR_RETRY <= into < _OCR_BACK or (first and _OCR_LOADS <= into < _OCR_READY):
        return "LOADING", None
    if first and into < _OCR_LOADS:
        return "UNAVAILABLE", "unloaded"
    return "READY", None
