"""The figures of one droplet over time: a ring buffer for each, bounded in number and length."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from console.domain.telemetry.sample import GpuSample, ModelSample, Sample
from console.domain.telemetry.series import Series
from console.domain.telemetry.totals import ModelKey, Totals, totals

MODELS = 16
"""Models with a history of their own: the first to have had traffic."""
SERVERS = 8
GPUS = 16
BATCHES_S = 60.0
"""The histogram of batch sizes is over this long, and over this many ticks at most."""
_BATCH_TICKS = 600
_CONTINUOUS = 2.5
"""Samples of one stream that are this many intervals apart at most touch: the line only delivered late."""


class GpuKey(NamedTuple):
    """A GPU or MIG device."""

    uuid: str


Of = ModelKey | GpuKey | None
"""Whose figure: a model's, a GPU's, or that of all (``Totals``)."""


class History:
    """Series by whose they are and which figure: fields of ``Totals``, and what ``_of_*`` add to them.

    Args:
        points: Ticks that each series keeps.
    """

    def __init__(self, points: int) -> None:
        self._points = points
        self._series: dict[tuple[Of, str], Series] = {}
        self._owners: set[Of] = set()
        self._batches: dict[ModelKey | None, deque[tuple[float, dict[int, int]]]] = {}
        self._end: float | None = None
        self._stream = ""

    def add(self, sample: Sample, of_all: Totals) -> bool:
        """Add a sample's figures.

        Returns:
            False where this side's clock went back: then everything began anew.
        """
        forward = self._end is None or sample.time > self._end
        if not forward:
            self._forget()
        seconds = self._seconds(sample)
        self._end, self._stream = sample.time, sample.stream
        self._put(None, _of_all(sample, of_all), sample.time, seconds)
        self._count(None, sample.time, of_all.batches)
        if len(sample.servers) > 1:
            for server in sample.servers[:SERVERS]:
                self._add_server(sample, ModelKey(server.name, "", ""), seconds)
        for server in sample.servers:
            for model in server.models:
                key = ModelKey(server.name, model.name, model.version)
                if key in self._owners or (model.rps and self._room(MODELS, ModelKey)):
                    self._put(key, _of_model(model), sample.time, seconds)
                    self._count(key, sample.time, model.window_batches)
        for gpu in sample.gpus:
            uuid = GpuKey(gpu.uuid)
            if uuid in self._owners or self._room(GPUS, GpuKey):
                self._put(uuid, _of_gpu(gpu), sample.time, seconds)
        return forward

    def _add_server(self, sample: Sample, key: ModelKey, seconds: float) -> None:
        if key in self._owners or self._room(MODELS + SERVERS, ModelKey):
            summed = totals(sample, key)
            self._put(key, _of_models(summed), sample.time, seconds)
            self._count(key, sample.time, summed.batches)

    def series(self, figure: str, of: Of = None) -> Series | None:
        """A figure's history; None where none is kept."""
        return self._series.get((of, figure))

    def batches(self, until: float, seconds: float = BATCHES_S, of: ModelKey | None = None) -> dict[int, int]:
        """Executions by batch size in the ``seconds`` before ``until``, of a model or of all."""
        sums: dict[int, int] = {}
        for time, sizes in self._batches.get(of, ()):
            if until - seconds < time <= until:
                for size, count in sizes.items():
                    sums[size] = sums.get(size, 0) + count
        return sums

    def _forget(self) -> None:
        self._series.clear()
        self._owners.clear()
        self._batches.clear()
        self._end = None

    def _seconds(self, sample: Sample) -> float:
        """How long the sample's rates held, stretched to touch the ones before where nothing is missing."""
        if sample.interval is None:
            return 0.0
        if self._end is not None and sample.stream == self._stream and not sample.missed:
            since = sample.time - self._end
            if since < _CONTINUOUS * sample.interval:
                return since
        return sample.interval

    def _room(self, limit: int, kind: type) -> bool:
        return sum(isinstance(owner, kind) for owner in self._owners) < limit

    def _put(self, of: Of, figures: Mapping[str, float | None], end: float, seconds: float) -> None:
        self._owners.add(of)
        for name, value in figures.items():
            series = self._series.get((of, name))
            if series is None:
                series = self._series[of, name] = Series(self._points)
            series.add(end, seconds, value)

    def _count(self, of: ModelKey | None, time: float, batches: Mapping[int, int]) -> None:
        ticks = self._batches.get(of)
        if ticks is None:
            ticks = self._batches[of] = deque(maxlen=_BATCH_TICKS)
        while ticks and ticks[0][0] <= time - 2 * BATCHES_S:
            ticks.popleft()
        counted = {size: count for size, count in batches.items() if count}
        if counted:
            ticks.append((time, counted))


def _of_all(sample: Sample, figures: Totals) -> dict[str, float | None]:
    return {
        **_of_models(figures),
        "dram_percent": figures.dram_percent,
        "utilization_percent": figures.utilization_percent,
        "memory_percent": figures.memory_percent,
        "cpu_percent": sample.host.cpu.busy_percent,
    }


def _of_models(figures: Totals) -> dict[str, float | None]:
    return {
        "rps": figures.rps,
        "hit_rate": figures.hit_rate,
        "error_percent": figures.error_percent,
        "mean_batch": figures.mean_batch,
        "queue_ms": figures.queue_ms,
        "compute_ms": figures.compute_ms,
    }


def _of_model(model: ModelSample) -> dict[str, float | None]:
    parts = (model.compute_input_ms, model.compute_infer_ms, model.compute_output_ms)
    there = [part for part in parts if part is not None]
    return {
        "rps": model.rps,
        "hit_rate": model.hit_rate,
        "error_percent": model.error_percent,
        "mean_batch": model.mean_batch,
        "queue_ms": model.queue_ms,
        "compute_ms": sum(there) if len(there) == len(parts) else None,
    }


def _of_gpu(gpu: GpuSample) -> dict[str, float | None]:
    known = gpu.memory_total and gpu.memory_used is not None
    return {
        "dram_percent": gpu.dram_percent,
        "utilization_percent": gpu.utilization_percent,
        "memory_percent": 100 * (gpu.memory_used or 0) / (gpu.memory_total or 1) if known else None,
        "power_w": gpu.power_w,
    }
