"""The four that matter: batch hit rate with the sizes of batches, requests per second, errors, DRAM throughput."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from console.domain.telemetry.sample import Failures
from console.domain.telemetry.totals import NO_GPU
from console.domain.words import figures as form
from console.services.history import BATCHES_S, Of
from console.tui.panels.graphs import Figure, GraphPanel
from console.tui.panels.panel import text
from console.tui.panels.picture import Picture, Told, told
from console.tui.theme import Look
from console.tui.widgets.graph import Threshold
from console.tui.widgets.histogram import histogram
from console.tui.widgets.strip import line

REASONS = (("rejected", "REJECTED"), ("cancelled", "CANCELED"), ("backend", "BACKEND"), ("other", "OTHER"))
"""Triton's reasons of failure: field of ``Failures``, its own word."""
_HISTOGRAM_FROM = 34
"""Cells of a panel that has room for the histogram."""


def _whole(value: float) -> str:
    return f"{value:.0f}%"


def _short(value: float) -> str:
    """For the scale: 5 cells at most."""
    if value >= 10_000:
        return f"{value / 1000:.0f}k" if value < 1e6 else f"{value:.0e}"
    return f"{value:.0f}" if value >= 10 or value == round(value) else f"{value:.1f}"


class HitRate(GraphPanel):
    """The share of requests that rode along in another's execution, and the batches they made."""

    id = "hit_rate"
    title = "BATCH HIT RATE"
    figure = Figure("hit_rate", form.percent, _whole, top=100.0)

    def notes(self, picture: Picture) -> str:
        """Mean batch and fill."""
        parts = []
        if picture.totals.mean_batch is not None:
            parts.append(f"batch {form.number(picture.totals.mean_batch)}")
        if picture.totals.fill_percent is not None:
            parts.append(f"fill {form.whole_percent(picture.totals.fill_percent)}")
        return "  ".join(parts)

    def below(self, picture: Picture, width: int, height: int, look: Look) -> list[Strip]:
        """The graph, and right of it the histogram."""
        beside = max(min(width // 3, 40), 12) if width >= _HISTOGRAM_FROM and height >= 3 else 0
        graph = super().below(picture, width - beside - 2 if beside else width, height, look)
        if not beside or not graph:
            return graph
        sizes = picture.view.batches(picture.until, BATCHES_S, picture.chosen.model)
        if not sizes:
            return [Strip([*strip]).adjust_cell_length(width) for strip in graph]
        bars = histogram(sizes, beside, height, look)
        return [line([*strip, text(look, "  "), *bar], width) for strip, bar in zip(graph, bars, strict=True)]

    def figures(self, picture: Picture) -> Sequence[Told]:
        """See ``Panel``."""
        totals = picture.totals
        sizes = picture.view.batches(picture.until, BATCHES_S, picture.chosen.model)
        return [
            told("batch hit rate", totals.hit_rate, "%", form.percent, self.why(picture)),
            told("mean batch", totals.mean_batch, "", form.number, picture.why("mean_batch")),
            told("fill", totals.fill_percent, "%", form.whole_percent, picture.why("fill_percent")),
            *(
                Told(f"executions of batch size {size} in {BATCHES_S:.0f} s", count, "", form.count(count))
                for size, count in sorted(sizes.items())
            ),
        ]

    def explain(self, picture: Picture) -> str:
        """See ``Panel``."""
        if picture.totals.hit_rate is None:
            return f"batch hit rate: n/a, because {self.why(picture)}"
        found = picture.model
        average = found[0].average.get("hit_rate") if found is not None else None
        since = f"; {form.percent(average)} since its load" if average is not None else ""
        return (
            "the share of requests that rode along in another request's execution"
            f"{since}; bars: executions by batch size in the last {BATCHES_S:.0f} s"
        )


class Requests(GraphPanel):
    """Requests per second, failed ones included."""

    id = "rps"
    title = "REQUESTS/S"
    figure = Figure("rps", form.number, _short)

    def notes(self, picture: Picture) -> str:
        """What waits."""
        waiting = picture.totals.pending
        return f"{form.count(waiting)} waiting" if waiting else ""

    def figures(self, picture: Picture) -> Sequence[Told]:
        """See ``Panel``."""
        return [
            told("requests", picture.totals.rps, "1/s", form.number, self.why(picture)),
            told("requests waiting", picture.totals.pending, "", form.count, picture.why("pending")),
        ]

    def explain(self, picture: Picture) -> str:
        """See ``Panel``."""
        if picture.totals.rps is None:
            return f"requests: n/a, because {self.why(picture)}"
        waiting = picture.totals.pending
        queue = (
            f"{form.count(waiting)} waiting" if waiting is not None else f"waiting: n/a, {picture.why('pending')}"
        )
        return f"answered and failed requests of {picture.subject}; ensembles beside their models left out; {queue}"


class Errors(GraphPanel):
    """Failed requests in percent of all, and Triton's reasons."""

    id = "errors"
    title = "ERRORS"
    figure = Figure("error_percent", form.percent, lambda value: f"{_short(value)}%", least=1.0)
    roles = ("bad", "line")

    def role(self, picture: Picture, shown: float) -> str:
        """Red where there are any."""
        return "bad" if shown > 0 else "strong"

    def notes(self, picture: Picture) -> str:
        """By reason, in the window."""
        return "  ".join(f"{count} {word}" for word, count in _reasons(picture.totals.failures) if count)

    def figures(self, picture: Picture) -> Sequence[Told]:
        """See ``Panel``."""
        failures = picture.totals.failures
        return [
            told("errors", picture.totals.error_percent, "%", form.percent, self.why(picture)),
            *(
                told(f"failed, {word}, in the window", count, "", form.count, "Triton's metrics do not tell")
                for word, count in _reasons(failures)
            ),
        ]

    def explain(self, picture: Picture) -> str:
        """See ``Panel``."""
        if picture.totals.error_percent is None:
            return f"errors: n/a, because {self.why(picture)}"
        return (
            "failed requests of all; Triton counts neither rejections at a full queue nor validation errors, "
            "and takes a Python backend's error response for a success"
        )


class Dram(GraphPanel):
    """DRAM throughput in percent of the device's peak."""

    id = "dram"
    title = "DRAM THROUGHPUT"
    figure = Figure("dram_percent", form.percent, _whole, top=100.0)

    def of(self, picture: Picture) -> Of:
        """A GPU's, or the mean of all."""
        return picture.chosen.gpu

    def now(self, picture: Picture) -> float | None:
        """See ``GraphPanel``."""
        gpu = picture.gpu
        return gpu.dram_percent if gpu is not None else picture.totals.dram_percent

    def why(self, picture: Picture) -> str:
        """See ``GraphPanel``."""
        gpu = picture.gpu
        if gpu is None or picture.sample is None:
            return picture.why("dram_percent")
        if gpu.state != "ok":
            return f"GPU {gpu.index} is {gpu.state}"
        return picture.reason(f"/gpus/{picture.sample.gpus.index(gpu)}/dram_percent")

    def notes(self, picture: Picture) -> str:
        """In GB/s, of how much, and whose."""
        gpu = picture.gpu
        rate = gpu.dram_gb_s if gpu is not None else picture.totals.dram_gb_s
        peak = gpu.dram_peak_gb_s if gpu is not None else picture.totals.dram_peak_gb_s
        parts = [f"GPU {gpu.index}"] if gpu is not None else []
        if rate is not None:
            parts.append(f"{form.count(rate)} of {form.count(peak)} GB/s" if peak else f"{form.count(rate)} GB/s")
        return "  ".join(parts)

    def threshold(self, picture: Picture) -> Threshold:
        """Where the bandwidth is saturated."""
        return Threshold(picture.thresholds.dram_high_percent, "warn")

    def figures(self, picture: Picture) -> Sequence[Told]:
        """See ``Panel``."""
        gpu = picture.gpu
        whose = f" of GPU {gpu.index}" if gpu is not None else ""
        rate = gpu.dram_gb_s if gpu is not None else picture.totals.dram_gb_s
        return [
            told(f"DRAM throughput{whose}", self.now(picture), "%", form.percent, self.why(picture)),
            told(f"DRAM throughput{whose}", rate, "GB/s", form.number, picture.why("dram_gb_s")),
        ]

    def explain(self, picture: Picture) -> str:
        """See ``Panel``."""
        if picture.sample is None or not picture.sample.gpus:
            return f"DRAM throughput: n/a, because {self.why(picture) or NO_GPU}"
        gpu = picture.gpu or picture.sample.gpus[0]
        if self.now(picture) is None:
            busy = gpu.memory_busy_percent
            instead = (
                f"; memory busy {form.whole_percent(busy)} of the time, no bandwidth" if busy is not None else ""
            )
            return f"DRAM throughput: n/a, because {self.why(picture)}{instead}"
        source = {"gpm": "NVML GPM", "dcgm-exporter": "the DCGM exporter"}.get(gpu.dram_source or "", "")
        peak = f"; peak by {gpu.dram_peak_basis}" if gpu.dram_peak_basis else ""
        mean = "" if picture.gpu is not None or len(picture.sample.gpus) == 1 else "mean of the GPUs; "
        low, high = picture.thresholds.dram_low_percent, picture.thresholds.dram_high_percent
        advice = f"; below {low:g} % with a queue: a larger batch; above {high:g} %: bandwidth is saturated"
        return f"{mean}by {source or 'the driver'}{peak}{advice}"


def _reasons(failures: Failures) -> list[tuple[str, int | None]]:
    return [(word, getattr(failures, field)) for field, word in REASONS]
