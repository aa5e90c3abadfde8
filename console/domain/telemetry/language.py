"""What takes the hit rate's place for decoupled models and those that batch in flight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.domain.telemetry.merge import Document
from console.domain.telemetry.rates import NOT_BEFORE
from console.domain.triton.language_models import known, kv_cache_percent

PLAIN = "neither a decoupled model nor one that batches in flight"
NO_METRIC = "the backend has no such metric"
NO_RESPONSES = "no response in this window"
WENT_BACK = "reset: the backend's metric went back"

_NOW = ("running", "waiting", "kv_cache_percent")
WINDOW = ("responses_per_s", "first_response_ms", "between_responses_ms", "tokens_per_s")
_HISTOGRAMS = {
    "first_response_ms": (("response_ms", "response_count", 1), ("first_s", "first_count", 1000)),
    "between_responses_ms": (("between_s", "between_count", 1000), ("inter_s", "inter_count", 1000)),
}
"""The sums and counts of histograms that tell a figure, the best first, and what makes them milliseconds."""
_NOTHING: Mapping[str, Any] = {}


def applies(model: Document) -> bool:
    """Whether a model answers in its own time, so that these figures mean something."""
    return bool(model.get("decoupled") or model.get("in_flight_batching"))


def now(model: Document, own: dict[str, str]) -> dict[str, float | None]:
    """The figures of the moment: requests running and waiting in the backend, and the KV cache in percent."""
    if not applies(model):
        own.update(dict.fromkeys(_NOW, PLAIN))
        return {}
    figures = known(model.get("series", _NOTHING))
    found = {
        "running": figures.get("running", figures.get("active")),
        "waiting": figures.get("waiting"),
        "kv_cache_percent": kv_cache_percent(figures),
    }
    own.update({name: NO_METRIC for name, value in found.items() if value is None})
    return found


def window(model: Document, before: Document, seconds: float, own: dict[str, str]) -> dict[str, float | None]:
    """The window's figures.

    The times come from histograms where there are any: to the first response or token from the request's
    arrival, and between tokens. Otherwise they come from Triton's response statistics, which begin with the
    execution and count the empty response that closes a stream among the responses.
    """
    if not applies(model):
        own.update(dict.fromkeys(WINDOW, PLAIN))
        return {}
    last, first = known(model.get("series", _NOTHING)), known(before.get("series", _NOTHING))
    responses = model.get("responses")
    found: dict[str, float | None] = {
        "tokens_per_s": _per_second(own, last, first, seconds),
        **{name: _mean_ms(own, name, last, first) for name in _HISTOGRAMS},
    }
    if responses is not None:
        # Triton leaves them out until the first response.
        _from_statistics(found, responses, before.get("responses", _NOTHING), seconds, own)
    else:
        for name in ("first_response_ms", "between_responses_ms"):
            if found[name] is None and own.get(name) == NO_METRIC:
                del own[name]
    return found


def _per_second(
    own: dict[str, str], last: Mapping[str, float], first: Mapping[str, float], seconds: float
) -> float | None:
    if "tokens" not in last:
        own["tokens_per_s"] = NO_METRIC
    elif "tokens" not in first:
        own["tokens_per_s"] = NOT_BEFORE
    elif last["tokens"] < first["tokens"]:
        own["tokens_per_s"] = WENT_BACK
    else:
        return (last["tokens"] - first["tokens"]) / seconds
    return None


def _mean_ms(own: dict[str, str], name: str, last: Mapping[str, float], first: Mapping[str, float]) -> float | None:
    """Mean milliseconds out of the sum and the count of the first histogram that is there."""
    for total, count, scale in _HISTOGRAMS[name]:
        if all(key in figures for key in (total, count) for figures in (last, first)):
            spent, times = last[total] - first[total], last[count] - first[count]
            if spent < 0 or times < 0:
                own[name] = WENT_BACK
            elif times == 0:
                own[name] = NO_RESPONSES
            else:
                return scale * spent / times
            return None
    own[name] = NO_METRIC
    return None


def _from_statistics(
    found: dict[str, float | None], last: Document, first: Mapping[str, Any], seconds: float, own: dict[str, str]
) -> None:
    """Fill in what Triton's response statistics tell."""
    grown = {name: last[name] - first.get(name, 0) for name in last}
    if "count" in grown:
        found["responses_per_s"] = (grown["count"] - grown.get("empty", 0)) / seconds
    if any(name not in grown for name in ("count", "first_count", "first_ns")):
        return
    later = grown["count"] - grown["first_count"]
    spent = grown.get("compute_infer_ns", 0) + grown.get("compute_output_ns", 0) - grown["first_ns"]
    for name, nanoseconds, count in (
        ("first_response_ms", grown["first_ns"], grown["first_count"]),
        ("between_responses_ms", spent, later),
    ):
        if found[name] is None and own.get(name) == NO_METRIC:
            if count <= 0 or nanoseconds < 0:
                own[name] = NO_RESPONSES
            else:
                found[name] = nanoseconds / count / 1e6
                del own[name]
