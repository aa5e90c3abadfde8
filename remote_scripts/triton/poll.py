"""Asking one Triton server what is true about it now: short requests, two chains of them side by side."""

from __future__ import annotations

from dataclasses import dataclass, field

from remote_scripts.triton.address import Endpoint, Endpoints
from remote_scripts.triton.answer import body_of, get, understood
from remote_scripts.triton.configs import Configs
from remote_scripts.triton.json import members, parse, text
from remote_scripts.triton.loopback import Answer, Chain, Request
from remote_scripts.triton.metrics import Metrics, MetricsReader
from remote_scripts.triton.stats import IndexEntry, ModelKey, Statistics, read_index, read_statistics

METRICS_OFF = "Triton's metrics are off (--allow-metrics=false)"


@dataclass(slots=True)
class Reading:
    """What one tick brought. A part that was not to be had is None, and its reason says why.

    Attributes:
        health: the answer to /v2/health/ready; None where HTTP is off.
        reasons: by part: "index", "statistics", "metrics".
        late: something was not answered in time.
    """

    health: Answer | None = None
    index: dict[ModelKey, IndexEntry] | None = None
    statistics: Statistics | None = None
    metrics: Metrics | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    late: bool = False


@dataclass(slots=True)
class Poll:
    """What is remembered of a server between ticks, for as long as its process lives.

    Attributes:
        version: Triton's; ``version_reason`` why it is not known.
        was_ready: it answered once that it is ready.
    """

    version: str | None = None
    version_reason: str | None = None
    configs: Configs = field(default_factory=Configs)
    reading: Reading = field(default_factory=Reading)
    was_ready: bool = False
    _reader: MetricsReader = field(default_factory=MetricsReader)

    def begin(self, endpoints: Endpoints, *, slow: bool) -> list[Chain]:
        """A new reading: the chains that fill it, the one with the figures first."""
        self.reading = Reading()
        if endpoints.metrics is None:
            self.reading.reasons["metrics"] = METRICS_OFF
        chains = [self._ask_figures(endpoints)]
        if endpoints.http is not None:
            chains.append(self._ask_state(endpoints.http, slow=slow))
        return chains

    def ask_configs(self, endpoints: Endpoints, *, slow: bool) -> list[Chain]:
        """What is still to be asked once the reading is there: at most one chain."""
        reading = self.reading
        statistics = reading.statistics.models if reading.statistics is not None else {}
        ready = [key for key, entry in (reading.index or {}).items() if entry.state == "READY"] or list(statistics)
        metrics = reading.metrics.models if reading.metrics is not None else {}
        wanted = self.configs.wanted(ready, statistics, metrics, slow=slow)
        if endpoints.http is None or reading.late or not wanted:
            return []
        return [self.configs.ask(endpoints.http, wanted)]

    def _ask_figures(self, endpoints: Endpoints) -> Chain:
        reading = self.reading
        statistics = metrics = Answer(0)
        if endpoints.http is not None:
            statistics = yield get(endpoints.http, "/v2/models/stats")
        # Right after the statistics, so that both speak of the same moment; understood only then.
        if endpoints.metrics is not None and statistics.failure not in ("refused", "unreachable"):
            metrics = yield get(endpoints.metrics, "/metrics")
        elif endpoints.metrics is not None:
            metrics = statistics
        if endpoints.http is not None:
            try:
                reading.statistics = understood(read_statistics, statistics, "its statistics")
            except ValueError as error:
                reading.reasons["statistics"] = str(error)
        if endpoints.metrics is not None:
            try:
                reading.metrics = self._reader.read(body_of(metrics, "its metrics"))
            except ValueError as error:
                reading.reasons["metrics"] = str(error)
        reading.late |= "timeout" in (statistics.failure, metrics.failure)

    def _ask_state(self, http: Endpoint, *, slow: bool) -> Chain:
        reading = self.reading
        reading.health = yield get(http, "/v2/health/ready", keep=True)
        reading.late |= reading.health.failure == "timeout"
        if reading.health.failure:
            return
        self.was_ready = self.was_ready or reading.health.status == 200
        if self.version is None and (slow or self.version_reason is None):
            answer = yield get(http, "/v2", keep=True)
            try:
                self.version = text(members(understood(parse, answer, "its version")).get("version"))
                self.version_reason = None if self.version else "Triton does not say its version"
            except ValueError as error:
                self.version_reason = str(error)
        index = yield Request(http.address, "/v2/repository/index", "POST", b"{}", connect=http.connect)
        reading.late |= index.failure == "timeout"
        try:
            reading.index = understood(read_index, index, "its repository index")
        except ValueError as error:
            reading.reasons["index"] = str(error)
