"""A server's branch of the document, from its last reading: counters by model, and why some are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from remote_scripts.files import cut, pointer
from remote_scripts.triton.config import KEYS
from remote_scripts.triton.metrics import Metrics, ModelMetrics
from remote_scripts.triton.poll import METRICS_OFF, Reading
from remote_scripts.triton.server import Server
from remote_scripts.triton.state import state_of
from remote_scripts.triton.stats import IndexEntry, ModelKey

MODELS = 2_000
BATCH_SIZES = 20_000
_SUMMARIES_OFF = "Triton's latency summaries are off (--metrics-config=summary_latencies=true turns them on)"
_SEVERAL_P95 = "each GPU has its own 95th percentile, and these cannot be made into one"
_NO_P95 = "no request in the last 60 s"
_NO_FAILURES = "Triton's metrics do not split failures by reason (24.08 and newer do)"
_COUNTS_NONE = "Triton's metrics count none (as with --metrics-config=counter_latencies=false), its statistics do"
_NO_PENDING = "Triton's metrics have no pending requests (23.09 and newer do)"
_NO_RESPONSES = "Triton has no response statistics for this model"
_NOT_READY = "Triton has figures for ready versions only"


@dataclass(slots=True)
class Budget:
    """What the document may still hold, over all servers."""

    models: int = MODELS
    batch_sizes: int = BATCH_SIZES


def write_server(server: Server, document: dict[str, Any], unavailable: dict[str, str], budget: Budget) -> None:
    """Fill ``document["servers"][name]``.

    Args:
        server: with this tick's reading.
        document: the tick's, with "servers" in it.
        unavailable: JSON Pointer to reason.
        budget: what is left; taken from.
    """
    at = pointer("servers", server.name)
    state, reason = state_of(server)
    branch: dict[str, Any] = {"how": server.how, "state": state}
    document["servers"][server.name] = branch
    known = {
        "reason": cut(reason) if reason else None,
        "unit": server.unit,
        "container": server.container,
        "pid": server.pid,
        "started": server.started if server.pid is not None else None,
    }
    branch.update({key: value for key, value in known.items() if value is not None})
    _write_restarts(server, branch, unavailable, at)
    _write_flags(server, branch)
    if server.endpoints is not None and server.endpoints.metrics is None:
        unavailable[f"{at}/metrics"] = METRICS_OFF
    if server.pid is None and not server.listed:
        unavailable[f"{at}/models"] = f"Triton is {state}"
        return
    reading = server.poll.reading
    if server.poll.version is not None:
        branch["version"] = server.poll.version
    elif server.poll.version_reason is not None:
        unavailable[f"{at}/version"] = cut(server.poll.version_reason)
    if reading.index is None and reading.statistics is None and reading.metrics is None:
        why = reason or "; ".join(dict.fromkeys(reading.reasons.values()))
        unavailable[f"{at}/models"] = cut(f"Triton is {state}: {why}" if why else f"Triton is {state}")
        return
    _Models(server, branch, unavailable, at, budget).write()


def _write_restarts(server: Server, branch: dict[str, Any], unavailable: dict[str, str], at: str) -> None:
    if server.unit is not None and server.unit_state is not None:
        branch["restarts"] = server.unit_state.restarts
    elif server.docker is not None:
        branch["restarts"] = server.docker.restarts
    elif server.unit is not None:
        unavailable[f"{at}/restarts"] = server.unit_problem or "systemd has not said yet"
    elif server.how == "docker":
        unavailable[f"{at}/restarts"] = "Docker's files can be read by root only"
    else:
        unavailable[f"{at}/restarts"] = "nothing counts the starts of a process that was started by hand"


def _write_flags(server: Server, branch: dict[str, Any]) -> None:
    if server.endpoints is not None:
        for name in ("http", "grpc", "metrics"):
            endpoint = getattr(server.endpoints, name)
            if endpoint is not None:
                branch[name] = endpoint.shown
    if server.flags is not None:
        branch["control_mode"] = cut(server.flags.control_mode)
        branch["exit_timeout_s"] = server.flags.exit_timeout_s
        branch["strict_readiness"] = server.flags.strict_readiness


class _Models:
    """Writes the models of one server."""

    def __init__(
        self, server: Server, branch: dict[str, Any], unavailable: dict[str, str], at: str, budget: Budget
    ) -> None:
        self._configs = server.poll.configs.known
        self._reading: Reading = server.poll.reading
        self._metrics = server.poll.reading.metrics or Metrics()
        self._branch = branch
        self._unavailable = unavailable
        self._at = at
        self._budget = budget
        self._left_out = 0
        self._sizes_left_out = 0

    def write(self) -> None:
        """Every model and version that the index, the statistics or the metrics name."""
        models: dict[str, dict[str, Any]] = {}
        self._branch["models"] = models
        statistics = self._reading.statistics.models if self._reading.statistics is not None else {}
        index = self._reading.index or {}
        metrics = self._own_series(index.keys() | statistics.keys())
        keys = list(index) + [key for key in statistics if key not in index]
        if not keys:
            keys = [key for key in metrics if key[1]]
        for key in keys:
            if self._budget.models <= 0:
                self._left_out += 1
                continue
            self._budget.models -= 1
            name, version = key
            models.setdefault(name, {})[version] = self._model(
                key, index.get(key), statistics.get(key), metrics.get(key)
            )
        self._explain_server()

    def _own_series(self, known: set[ModelKey]) -> dict[ModelKey, ModelMetrics]:
        """The metrics by model; series that name no version go to the model's only one, or to the server."""
        metrics = self._metrics.models
        loose = [key for key in metrics if key not in known and "series" in metrics[key].fields]
        for name, version in loose:
            found = metrics[name, version]
            homes = [key for key in known if key[0] == name] if not version else []
            if len(homes) == 1:
                home = metrics.setdefault(homes[0], ModelMetrics())
                home.fields.setdefault("series", {}).update(found.fields["series"])
                home.in_flight = home.in_flight or found.in_flight
            else:
                self._metrics.series.update(found.fields["series"])
        return metrics

    def _model(
        self,
        key: ModelKey,
        entry: IndexEntry | None,
        statistics: dict[str, Any] | None,
        metrics: ModelMetrics | None,
    ) -> dict[str, Any]:
        at = self._at + pointer("models", *key)
        model: dict[str, Any] = {"state": entry.state if entry is not None else "UNKNOWN"}
        if entry is None and statistics is not None:
            model["state"] = "READY"  # the statistics list ready versions only
        if entry is not None and entry.reason:
            model["reason"] = entry.reason
        config = self._configs.get(key)
        if isinstance(config, dict):
            model.update(config)
        if statistics is not None:
            model.update(statistics)
            self._take_sizes(model)
        # The failures of an unloaded model stay on the page (core, ~MetricModelReporter): they are nobody's.
        if metrics is not None and model["state"] in ("READY", "UNKNOWN"):
            model.update(_believable(metrics.fields, model))
            if metrics.in_flight:
                model["in_flight_batching"] = True
        if model["state"] == "READY":
            self._explain_model(model, config, metrics, at)
        elif entry is not None:
            self._unavailable[at] = _NOT_READY
        return model

    def _take_sizes(self, model: dict[str, Any]) -> None:
        sizes = model.get("batches", {})
        if len(sizes) > self._budget.batch_sizes:
            self._sizes_left_out += len(sizes) - self._budget.batch_sizes
            model["batches"] = sizes = dict(list(sizes.items())[: self._budget.batch_sizes])
        self._budget.batch_sizes -= len(sizes)

    def _explain_model(
        self, model: dict[str, Any], config: dict[str, Any] | str | None, metrics: ModelMetrics | None, at: str
    ) -> None:
        unavailable = self._unavailable
        if not isinstance(config, dict):
            reason = cut(config or "its config has not been read yet")
            unavailable.update({f"{at}/{key}": reason for key in KEYS if key not in model})
        self._explain_p95(model, metrics, at)
        if self._reading.metrics is None:
            reason = self._no_metrics()
            unavailable[f"{at}/failures"] = unavailable[f"{at}/pending"] = reason
        else:
            if "failures" not in model:
                absent = metrics is None or "failures" not in metrics.fields
                unavailable[f"{at}/failures"] = _NO_FAILURES if absent else _COUNTS_NONE
            if "pending" not in model:
                unavailable[f"{at}/pending"] = _NO_PENDING
        if "responses" not in model and (model.get("decoupled") or model.get("in_flight_batching")):
            unavailable[f"{at}/responses"] = _NO_RESPONSES

    def _explain_p95(self, model: dict[str, Any], metrics: ModelMetrics | None, at: str) -> None:
        if self._reading.metrics is None:
            reason = self._no_metrics()
        elif metrics is None or not metrics.summaries:
            reason = _SUMMARIES_OFF
        elif not metrics.p95:
            reason = _NO_P95
        elif len(metrics.p95) > 1:
            reason = _SEVERAL_P95
        else:
            model["p95_us"] = int(metrics.p95[0])
            return
        self._unavailable[f"{at}/p95_us"] = reason

    def _no_metrics(self) -> str:
        return cut(self._reading.reasons.get("metrics", "Triton's metrics were not read"))

    def _explain_server(self) -> None:
        reasons = self._reading.reasons
        said = [reasons[part] for part in ("index", "statistics") if part in reasons]
        if self._left_out:
            said.append(f"{self._left_out} more models are left out: {MODELS:,} is the most")
        if self._sizes_left_out:
            said.append(f"{self._sizes_left_out} batch sizes are left out: {BATCH_SIZES:,} is the most")
        if self._reading.statistics is not None and self._reading.statistics.skipped:
            said.append(f"{self._reading.statistics.skipped} entries of the statistics cannot be read")
        if said:
            self._unavailable[f"{self._at}/models"] = cut("; ".join(said))
        if self._metrics.series:
            self._branch["series"] = self._metrics.series
        if self._metrics.left_out:
            self._unavailable[f"{self._at}/series"] = f"{self._metrics.left_out} more series are left out"
        elif self._reading.metrics is None:
            self._unavailable[f"{self._at}/series"] = self._no_metrics()


def _believable(fields: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    """What the metrics of a model say, without counters that stand still (counter_latencies=false).

    The metrics are read after the statistics and outlive a reload: where they count at all they are not behind.
    """
    frozen = set()
    if not sum(fields.get("failures", {}).values()) and model.get("fail"):
        frozen.add("failures")
    if not fields.get("metrics_success") and model.get("success"):
        frozen |= {"metrics_success", "metrics_executions"}
    return {key: value for key, value in fields.items() if key not in frozen} if frozen else fields
