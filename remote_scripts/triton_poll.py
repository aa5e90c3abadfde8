"""Asking one Triton server what is true about it now: one chain of short requests a tick."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from remote_scripts.loopback import Answer, Chain, Request
from remote_scripts.triton_address import Endpoint, Endpoints
from remote_scripts.triton_config import read_config
from remote_scripts.triton_json import error_text, members, parse, text
from remote_scripts.triton_metrics import Metrics, MetricsReader
from remote_scripts.triton_stats import IndexEntry, ModelKey, Statistics, read_index, read_statistics

CONFIGS_A_TICK = 64
"""Configs fetched in one tick at most: the rest comes with the next ones."""
CONFIGS_AGAIN = 4
"""Configs fetched again at each slow tick, in turn: a model may be loaded anew without a trace in its figures."""
METRICS_OFF = "Triton's metrics are off (--allow-metrics=false)"
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(slots=True)
class Reading:
    """What one tick's chain found. A part that was not to be had is None, and its reason says why.

    Attributes:
        health: the answer to /v2/health/ready; None where HTTP is off.
        reasons: by part: "version", "index", "statistics", "metrics".
    """

    health: Answer | None = None
    index: dict[ModelKey, IndexEntry] | None = None
    statistics: Statistics | None = None
    metrics: Metrics | None = None
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Poll:
    """What is remembered of a server between ticks, for as long as its process lives.

    Attributes:
        version: Triton's.
        configs: by model and version, the wire's fields that come from the config in force, or why there are none.
        was_ready: it answered once that it is ready.
        late: ticks in a row without an answer in time.
    """

    version: str | None = None
    configs: dict[ModelKey, dict[str, Any] | str] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    was_ready: bool = False
    late: int = 0
    _stale: set[ModelKey] = field(default_factory=set)
    _turn: int = 0
    _seen: dict[ModelKey, tuple[int, int, float | None]] = field(default_factory=dict)
    _reader: MetricsReader = field(default_factory=MetricsReader)

    def chain(self, endpoints: Endpoints, *, slow: bool) -> Chain:
        """The requests of one tick; ``reading`` holds what they brought."""
        reading = self.reading = Reading()
        if endpoints.http is not None:
            yield from self._ask_http(endpoints.http, reading)
            if reading.health is None or reading.health.failure:
                return
        statistics = Answer(0)
        if endpoints.http is not None:
            statistics = yield _get(endpoints.http, "/v2/models/stats")
        # Right after the statistics, so that both speak of the same moment; understood only then.
        metrics = Answer(0)
        if endpoints.metrics is not None:
            metrics = yield _get(endpoints.metrics, "/metrics")
        if endpoints.http is not None:
            self._take_statistics(reading, statistics)
        if endpoints.metrics is not None:
            self._take_metrics(reading, metrics)
        else:
            reading.reasons["metrics"] = METRICS_OFF
        if endpoints.http is not None and (reading.index is not None or reading.statistics is not None):
            yield from self._ask_configs(endpoints.http, reading, slow=slow)

    def _ask_http(self, http: Endpoint, reading: Reading) -> Chain:
        reading.health = yield _get(http, "/v2/health/ready", keep=True)
        if reading.health.failure:
            self.late = self.late + 1 if reading.health.failure == "timeout" else 0
            return
        self.late = 0
        self.was_ready = self.was_ready or reading.health.status == 200
        if self.version is None:
            self._take_version(reading, (yield _get(http, "/v2", keep=True)))
        body = b"{}"
        index = yield Request(http.address, "/v2/repository/index", "POST", body, keep=True, connect=http.connect)
        try:
            reading.index = read_index(_body(index, "its repository index"))
        except ValueError as error:
            reading.reasons["index"] = str(error)

    def _take_version(self, reading: Reading, answer: Answer) -> None:
        try:
            self.version = text(members(parse(_body(answer, "its version"))).get("version"))
        except ValueError as error:
            reading.reasons["version"] = str(error)

    def _take_statistics(self, reading: Reading, answer: Answer) -> None:
        try:
            reading.statistics = read_statistics(_body(answer, "its statistics"))
        except ValueError as error:
            reading.reasons["statistics"] = str(error)

    def _take_metrics(self, reading: Reading, answer: Answer) -> None:
        try:
            reading.metrics = self._reader.read(_body(answer, "its metrics"))
        except ValueError as error:
            reading.reasons["metrics"] = str(error)

    def _ask_configs(self, http: Endpoint, reading: Reading, *, slow: bool) -> Chain:
        wanted = self._wanted(reading, slow=slow)
        for number, key in enumerate(wanted, 1):
            name, version = quote(key[0]), quote(key[1])
            path = f"/v2/models/{name}/versions/{version}/config"
            answer = yield _get(http, path, keep=number < len(wanted))
            if answer.failure == "timeout":
                return  # the rest at the next tick
            self._stale.discard(key)
            try:
                self.configs[key] = read_config(_body(answer, "its config"))
            except ValueError as error:
                self.configs[key] = str(error)

    def _wanted(self, reading: Reading, *, slow: bool) -> list[ModelKey]:
        """The models whose config is not known, or may have changed."""
        statistics = reading.statistics.models if reading.statistics is not None else {}
        entries = reading.index or {}
        ready = [key for key, entry in entries.items() if entry.state == "READY"] or list(statistics)
        for gone in self.configs.keys() - set(ready):
            del self.configs[gone]
        for key in ready:
            metrics = reading.metrics.models.get(key) if reading.metrics is not None else None
            fields = statistics.get(key, {})
            loaded = metrics.loaded if metrics is not None else None
            now = fields.get("success", 0), fields.get("executions", 0), loaded
            before = self._seen.get(key, now)
            if now[0] < before[0] or now[1] < before[1] or now[2] != before[2]:
                self._stale.add(key)
            self._seen[key] = now
        for gone in self._seen.keys() - set(ready):
            del self._seen[gone]
        self._stale.intersection_update(ready)
        wanted = [key for key in ready if key not in self.configs or key in self._stale]
        if slow and not wanted and ready:
            first = self._turn % len(ready)
            wanted = (ready[first:] + ready[:first])[:CONFIGS_AGAIN]
            self._turn += CONFIGS_AGAIN
        return wanted[:CONFIGS_A_TICK]


def quote(name: str) -> str:
    """A path segment, percent-encoded."""
    encoded = name.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in encoded)


def explain(answer: Answer, what: str) -> str:
    """Why an answer brought nothing, after "n/a, because"."""
    if answer.failure:
        return f"Triton was asked for {what}: {answer.reason}"
    message = error_text(answer.body)
    if answer.status == 403:
        return f"Triton restricts access to {what} (403{': ' + message if message else ''})"
    return f"Triton answered {answer.status} when asked for {what}{': ' + message if message else ''}"


def _body(answer: Answer, what: str) -> bytes:
    if answer.failure or answer.status != 200:
        raise ValueError(explain(answer, what))
    return answer.body


def _get(endpoint: Endpoint, path: str, *, keep: bool = False) -> Request:
    return Request(endpoint.address, path, keep=keep, connect=endpoint.connect)
