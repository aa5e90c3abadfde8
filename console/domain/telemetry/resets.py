"""Was a model's counting begun anew between two ticks? A window over that moment would be a lie.

Three signs: another server process; a counter that is smaller than it was; statistics and metrics that
disagree, since a reload begins the statistics anew and lets the metrics go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.domain.telemetry.rates import went_back

STATISTICS = (
    "success",
    "fail",
    "executions",
    "inferences",
    "cache_hit",
    "cache_miss",
    "success_ns",
    "fail_ns",
    "queue_ns",
    "compute_input_ns",
    "compute_infer_ns",
    "compute_output_ns",
)
METRICS = ("metrics_success", "metrics_executions")
_FAILURES = ("REJECTED", "CANCELED", "BACKEND", "OTHER")
_RESPONSES = (
    "count",
    "success",
    "fail",
    "empty",
    "compute_infer_ns",
    "compute_output_ns",
    "first_count",
    "first_ns",
)

RESTARTED = "reset: the server was restarted"
RELOADED = "reset: statistics and metrics disagree, as they do after a reload"

CLOCK_STEP = 2.0
"""Seconds by which a start time may move without a restart: it is derived from the wall clock."""


def server_restarted(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether another process answers as this server. The start time counts only where no process id is known."""
    if "restarts" in now and "restarts" in before and now["restarts"] > before["restarts"]:
        return True
    if "pid" in now and "pid" in before:
        return bool(now["pid"] != before["pid"])
    if "started" in now and "started" in before:
        return bool(abs(now["started"] - before["started"]) > CLOCK_STEP)
    return False


def counters_back(now: Mapping[str, Any], before: Mapping[str, Any]) -> str | None:
    """The reset that a counter going back shows, in words."""
    name = went_back(now, before, STATISTICS) or went_back(now, before, METRICS)
    if name is None and "failures" in now and "failures" in before:
        name = went_back(now["failures"], before["failures"], _FAILURES)
    if name is None and "responses" in now and "responses" in before:
        name = went_back(now["responses"], before["responses"], _RESPONSES)
    if name is None and "batches" in before and now.get("batches") is not before["batches"]:
        now_batches = now.get("batches", {})
        for size, (count, _) in before["batches"].items():
            if size not in now_batches or now_batches[size][0] < count:
                name = f"executions at batch size {size}"
                break
    return None if name is None else f"reset: {name} went back"


class Offsets:
    """How far the metrics are ahead of the statistics, for one model since its last reset.

    The difference is what was counted before the last reload, and for a moment what was counted between the two
    readings. A reload adds to it everything that the statistics had counted, requests and executions alike: only
    where both differences grew by as much was there one. A server that had counted next to nothing may look so
    without a reload, and gives a gap then; one that had counted nothing at all has nothing to lose.
    """

    __slots__ = ("_lowest",)

    _PAIRS = (("metrics_success", "success"), ("metrics_executions", "executions"))

    def __init__(self) -> None:
        self._lowest: list[int | None] = [None, None]

    def reloaded(self, now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """Compare this tick with the one before it, and remember."""
        signs: list[bool] = []
        for order, (metric, statistic) in enumerate(self._PAIRS):
            if metric not in now or statistic not in now:
                continue
            offset = now[metric] - now[statistic]
            lowest = self._lowest[order]
            if lowest is not None and metric in before and before.get(statistic):
                grew = offset > before[metric] - before[statistic]
                signs.append(grew and offset >= lowest + before[statistic])
            self._lowest[order] = offset if lowest is None else min(lowest, offset)
        return bool(signs) and all(signs)
