"""`watch` for people: a few short lines a tick, in columns that stay where they are."""

from __future__ import annotations

import time
from collections.abc import Sequence

from console.cli.output import Output
from console.domain.telemetry.sample import GpuSample, ModelSample, Sample, ServerSample
from console.domain.words import figures as form
from console.domain.words.cells import fit, left, width, wrap
from console.domain.words.figures import NA
from console.domain.words.gpus import NONE, gpu_number
from console.domain.words.models import at_rest, condition, model_name
from console.settings.schema import Droplet

EVERY = 20
"""Lines of figures between two headings."""
_COLUMNS = ((9, "RPS"), (8, "HIT %"), (7, "BATCH"), (7, "ERR %"), (10, "QUEUE"), (10, "INFER"), (5, "WAIT"))


class Ticks:
    """Turns samples into lines; the heading comes again after ``EVERY`` lines."""

    def __init__(self, droplets: Sequence[Droplet], output: Output) -> None:
        self._output = output
        self._several = len(droplets) > 1
        self._colours = {droplet.name: droplet.colour for droplet in droplets}
        self._taken = 9 + (15 if self._several else 0)
        rest = self._taken + sum(room for room, _ in _COLUMNS)
        self._label = min(max(output.width - rest, 14), 40) if output.terminal else 24
        self._since_heading = EVERY
        self._told: dict[tuple[str, str], str] = {}

    def lines(self, sample: Sample) -> list[str]:
        """The lines of one sample: the servers with their models, the GPUs, the host, and reasons that are new."""
        start = time.strftime("%H:%M:%S ", time.localtime(sample.time))
        if self._several:
            name = left(fit(sample.droplet, 14), 15)
            start += self._output.paint(name, self._colours.get(sample.droplet))
        body = [
            *(line for server in sample.servers for line in self._server(server, len(sample.servers) > 1)),
            *(self._gpu(gpu, gpu_number(gpu, sample.gpus)) for gpu in sample.gpus),
            self._host(sample),
        ]
        found = [self._heading()] if self._since_heading >= EVERY else []
        self._since_heading = len(body) if found else self._since_heading + len(body)
        news = [line for text in self._news(sample) for line in self._wrapped(start, text)]
        return [*found, *(start + line for line in body), *news]

    def _heading(self) -> str:
        blank = " " * self._taken
        heads = "".join(head.rjust(room) for room, head in _COLUMNS)
        return self._output.paint(f"{blank}{left('MODEL', self._label)}{heads}", "bold")

    def _server(self, server: ServerSample, several: bool) -> list[str]:
        """Its models; above them the server itself where there are several, or where it has none to show for it."""
        models = [self._model(model) for model in server.models if model.state == "READY"]
        if server.state == "ready" and not several:
            return models
        name = fit(server.name, self._label - 1) if self._output.terminal else server.name
        state = server.state if server.state == "ready" else self._output.paint(server.state.upper(), "red")
        return [f"{left(name, self._label)} {state}", *models]

    def _model(self, model: ModelSample) -> str:
        name = model_name(model)
        label = left(fit(name, self._label - 1) if self._output.terminal else name, self._label)
        cells = (
            _figure(model.rps),
            _figure(model.hit_rate),
            _figure(model.mean_batch),
            NA if model.error_percent is None else form.percent(model.error_percent).removesuffix(" %"),
            NA if model.queue_ms is None else form.milliseconds(model.queue_ms),
            NA if model.compute_infer_ms is None else form.milliseconds(model.compute_infer_ms),
            "-" if model.pending is None else str(model.pending),
        )
        return label + "".join(cell.rjust(room) for cell, (room, _) in zip(cells, _COLUMNS, strict=True))

    def _gpu(self, gpu: GpuSample, own: str) -> str:
        label = left(f"gpu {own} ", 7)
        if gpu.state != "ok":
            return label + gpu.state.upper() + (f": {gpu.state_reason}" if gpu.state_reason else "")
        parts = [f"util {_percent(gpu.utilization_percent)}", f"dram {_percent(gpu.dram_percent)}"]
        if gpu.dram_gb_s is not None:
            parts.append(f"{form.number(gpu.dram_gb_s)} GB/s")
        if gpu.memory_used is not None and gpu.memory_total:
            parts.append(f"mem {gpu.memory_used / 2**30:.1f}/{gpu.memory_total / 2**30:.0f} GiB")
        if gpu.temperature_c is not None:
            parts.append(f"{gpu.temperature_c:.0f} °C")
        if gpu.power_w is not None:
            parts.append(f"{gpu.power_w:.0f} W")
        line = label + "  ".join(parts)
        if self._output.terminal and self._taken + width(line) > self._output.width:
            return label + " ".join(parts)
        return line

    def _host(self, sample: Sample) -> str:
        host = sample.host
        parts = [f"cpu {_percent(host.cpu.busy_percent)}"]
        if host.memory_total and host.memory_available is not None:
            used = host.memory_total - host.memory_available
            parts.append(f"mem {used / 2**30:.1f}/{host.memory_total / 2**30:.1f} GiB")
        if host.net_rx_rate is not None and host.net_tx_rate is not None:
            parts.append(f"net in {form.rate(host.net_rx_rate)} out {form.rate(host.net_tx_rate)}")
        if sample.missed:
            parts.append(f"{sample.missed} ticks missed")
        return left("host", 7) + "  ".join(parts)

    def _wrapped(self, start: str, text: str) -> list[str]:
        """A reason that is new; whole in one line where no person reads it."""
        if not self._output.terminal:
            return [start + self._output.paint(text, "dim")]
        first, *others = wrap(text, max(self._output.width - self._taken, 20))
        lines = [start + self._output.paint(first, "dim")]
        return lines + [" " * self._taken + self._output.paint(line, "dim") for line in others]

    def _news(self, sample: Sample) -> list[str]:
        """What is said once when it changes: states of servers and models, and why there are no figures."""
        now: dict[tuple[str, str], str] = {}
        for place, server in enumerate(sample.servers):
            reason = f": {server.reason}" if server.reason and server.state != "ready" else ""
            called = server.name if server.name.startswith("triton") else f"triton {server.name}"
            now[sample.droplet, called] = f"{server.state}{reason}"
            place_of = f" on {server.name}" if len(sample.servers) > 1 else ""
            resting = [model_name(model) for model in server.models if at_rest(model, server)]
            if resting:
                now[sample.droplet, f"in the repository{place_of}, not loaded"] = ", ".join(resting)
            for number, model in enumerate(server.models):
                if at_rest(model, server):
                    continue
                why = model.gap or sample.unavailable.get(f"/servers/{place}/models/{number}/hit_rate")
                if model.state != "READY":
                    now[sample.droplet, model_name(model) + place_of] = condition(model)
                elif why and model.rps != 0:  # no traffic is seen without words
                    now[sample.droplet, model_name(model) + place_of] = f"{NA}, because {why}"
        if not sample.servers:
            now[sample.droplet, "triton"] = sample.unavailable.get("/servers", "no server found")
        for place, gpu in enumerate(sample.gpus):
            if gpu.state == "ok" and gpu.dram_percent is None:
                reason = sample.unavailable.get(f"/gpus/{place}/dram_percent", "no reason was given")
                now[sample.droplet, f"gpu {gpu_number(gpu, sample.gpus)}"] = f"dram {NA}, because {reason}"
        if not sample.gpus:
            reason = sample.unavailable.get("/gpus", NONE if sample.driver_version else "no reason was given")
            now[sample.droplet, "gpu"] = f"{NA}, because {reason}"
        news: dict[str, list[str]] = {}
        for key, text in now.items():
            if self._told.get(key) != text:
                news.setdefault(text, []).append(key[1])
        self._told = {key: text for key, text in self._told.items() if key[0] != sample.droplet} | now
        return [f"{', '.join(names)}: {text}" for text, names in news.items()]


def _figure(value: float | None) -> str:
    return NA if value is None else form.number(value)


def _percent(value: float | None) -> str:
    return NA if value is None else f"{value:.0f} %"
