"""The models' configs in force: read once for each load, and again when something shows a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remote_scripts.triton.address import Endpoint
from remote_scripts.triton.answer import get, understood
from remote_scripts.triton.config import read_config
from remote_scripts.triton.loopback import Chain
from remote_scripts.triton.metrics import ModelMetrics
from remote_scripts.triton.stats import ModelKey

AT_ONCE = 64
"""Configs read in one tick at most: the rest comes with the next ones."""
AGAIN = 4
"""Configs read again at each slow tick, in turn: a model without traffic may be loaded anew without a trace."""


@dataclass(slots=True)
class Configs:
    """What is known of the configs of one server's models.

    Attributes:
        known: by model and version, the wire's fields that come from the config, or why there are none.
    """

    known: dict[ModelKey, dict[str, Any] | str] = field(default_factory=dict)
    _stale: set[ModelKey] = field(default_factory=set)
    _seen: dict[ModelKey, tuple[int, int, float | None]] = field(default_factory=dict)
    _turn: int = 0

    def wanted(
        self,
        ready: Sequence[ModelKey],
        statistics: Mapping[ModelKey, Mapping[str, Any]],
        metrics: Mapping[ModelKey, ModelMetrics],
        *,
        slow: bool,
    ) -> list[ModelKey]:
        """The models whose config is not known, or may have changed.

        Args:
            ready: the models that are; of others nothing is kept.
            statistics: their counters, which a reload begins anew.
            metrics: their metrics; the seconds that the last load took tell one from another.
            slow: have some looked at again.
        """
        present = set(ready)
        for gone in self.known.keys() - present:
            del self.known[gone]
        for gone in self._seen.keys() - present:
            del self._seen[gone]
        for key in ready:
            fields = statistics.get(key)
            if fields is None:
                continue
            loaded = metrics[key].loaded if key in metrics else None
            now = fields.get("success", 0), fields.get("executions", 0), loaded
            before = self._seen.get(key, now)
            if now[0] < before[0] or now[1] < before[1] or (loaded is not None and loaded != before[2]):
                self._stale.add(key)
            self._seen[key] = now
        self._stale &= present
        wanted = [key for key in ready if key not in self.known or key in self._stale]
        if slow and not wanted and ready:
            first = self._turn % len(ready)
            wanted = [*ready[first:], *ready[:first]][:AGAIN]
            self._turn += AGAIN
        return wanted[:AT_ONCE]

    def ask(self, http: Endpoint, wanted: Sequence[ModelKey]) -> Chain:
        """Read the configs of ``wanted``, over one connection."""
        for number, key in enumerate(wanted, 1):
            name, version = quote(key[0]), quote(key[1])
            answer = yield get(http, f"/v2/models/{name}/versions/{version}/config", keep=number < len(wanted))
            if answer.failure == "timeout":
                return  # the rest at the next tick
            self._stale.discard(key)
            try:
                self.known[key] = understood(read_config, answer, "its config")
            except ValueError as error:
                self.known[key] = str(error)


def quote(name: str) -> str:
    """A name as a path segment: as it stands, for Triton decodes nothing (2.51.0: ``%5Bm%5D`` is an unknown model).

    Only what would end the segment or the request is percent-encoded; such a name cannot be asked for.
    """
    return "".join(_segment(letter) for letter in name)


def _segment(letter: str) -> str:
    if letter > " " and letter not in "/?\x7f" and not "\ud800" <= letter <= "\udfff":
        return letter
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))
