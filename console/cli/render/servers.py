"""The Triton servers in a picture: one heading each, and two rows for each model, the window and since the load."""

from __future__ import annotations

import time

from console.cli.output import Output
from console.cli.render.table import table
from console.domain.telemetry.sample import Failures, ModelSample, Sample, ServerSample
from console.domain.words import figures as form
from console.domain.words.cells import listed, wrap
from console.domain.words.figures import NA, Figures
from console.domain.words.models import at_rest, condition, inside, model_name, readiness

_HEADING = ("MODEL", "RPS", "HIT RATE", "BATCH", "FILL", "ERRORS", "QUEUE", "INFER")
_FIGURES = (
    ("rps", form.number, "RPS"),
    ("hit_rate", form.percent, "HIT RATE"),
    ("mean_batch", form.number, "BATCH"),
    ("fill_percent", form.whole_percent, "FILL"),
    ("error_percent", form.percent, "ERRORS"),
    ("queue_ms", form.milliseconds, "QUEUE"),
    ("compute_infer_ms", form.milliseconds, "INFER"),
)
"""A row's figures: field of ModelSample, how it is written, heading."""


def server_lines(sample: Sample, figures: Figures, output: Output) -> list[str]:
    """Lines for all servers, an empty line before each."""
    if not sample.servers:
        reason = sample.unavailable.get("/servers", "no tritonserver runs here, in a unit, a container or by hand")
        return ["", *wrap(f"{output.paint('TRITON', 'bold')}  none: {reason}", output.width, "        ")]
    lines: list[str] = []
    for place, server in enumerate(sample.servers):
        lines += ["", *_heading(server, sample.time, output)]
        lines += _models(server, f"/servers/{place}", sample.time, figures, output)
        missing = sample.unavailable.get(f"/servers/{place}/models")
        if server.models and missing:
            lines += wrap(f"  not all can be told about the models: {missing}", output.width, "    ")
    return lines


def _heading(server: ServerSample, now: float, output: Output) -> list[str]:
    state = output.paint(server.state, "green" if server.state == "ready" else "red")
    parts = [f"{output.paint('TRITON', 'bold')}  {server.name}", state]
    if server.version:
        parts.append(server.version)
    ready = readiness(server)
    if ready is not None:
        parts.append(ready)
    if server.started is not None:
        parts.append(f"up {form.duration(max(now - server.started, 0))}")
    if server.restarts:
        parts.append(f"{server.restarts} restarts")
    lines = [", ".join(parts)]
    where = [f"{server.how} {server.unit or server.container or server.pid}"] if server.how else []
    lines += wrap("        " + ", ".join([*where, *_ports(server)]), output.width, "        ")
    if server.reason and server.state != "ready":
        lines += wrap(f"        {server.reason}", output.width, "        ")
    return lines


def _ports(server: ServerSample) -> list[str]:
    """Its endpoints; the address is not said again for the second and third."""
    found: list[str] = []
    before = None
    for name, at in (("HTTP", server.http), ("gRPC", server.grpc), ("metrics", server.metrics)):
        if at:
            address, _, port = at.rpartition(":")
            found.append(f"{name} {at if address != before else ':' + port}")
            before = address
    return found


def _models(server: ServerSample, here: str, now: float, figures: Figures, output: Output) -> list[str]:
    rows: list[tuple[str, ...]] = [_HEADING]
    remarks: dict[int, list[str]] = {}
    others: dict[str, list[str]] = {}
    idle: list[str] = []
    idle_failures: list[str] = []
    resting = [model_name(model) for model in server.models if at_rest(model, server)]
    for place, model in enumerate(server.models):
        name = model_name(model)
        if at_rest(model, server):
            continue
        if model.state != "READY":
            others.setdefault(condition(model), []).append(name)
            continue
        if _idle(model):
            idle.append(f"{name} {_since(model, now)}")
            if failures := _failures(model.failures):
                idle_failures.append(f"{name} failed since the server's start: {failures}")
            continue
        rows.append(_window(model, name, f"{here}/models/{place}", figures))
        if any(value is not None for value in model.average.values()):
            rows.append(_average(model))
        remarks[len(rows) - 1] = _remarks(model, now)
    if not server.models:
        return wrap(f"        models: {NA}, because {figures.why(f'{here}/models')}", output.width, "        ")
    lines: list[str] = []
    if len(rows) > 1:
        for number, line in enumerate(table(rows, "<>>>>>>>", output.width if output.terminal else None)):
            lines.append(output.paint(line, "bold") if number == 0 else line)
            if remarks.get(number):
                text = "; ".join(remarks[number])
                lines += [output.paint(part, "dim") for part in wrap(f"  {text}", output.width, "    ")]
    room = output.width if output.terminal else None
    if idle:
        lines.append(output.paint(listed("  no traffic: ", idle, room), "dim"))
    for text in idle_failures:
        lines += [output.paint(part, "dim") for part in wrap(f"  {text}", output.width, "    ")]
    if resting:
        start = f"  {len(resting)} in the repository, not loaded: "
        lines.append(output.paint(listed(start, resting, room), "dim"))
    for text, names in others.items():
        lines += wrap(f"  {', '.join(names)}: {text}", output.width, "    ")
    return lines


def _window(model: ModelSample, name: str, here: str, figures: Figures) -> tuple[str, ...]:
    return (
        name,
        *(
            figures.show(getattr(model, field), write, f"{here}/{field}", heading, of=name, otherwise=model.gap)
            for field, write, heading in _FIGURES
        ),
    )


def _average(model: ModelSample) -> tuple[str, ...]:
    cells = ["  since its load"]
    for field, write, _ in _FIGURES:
        value = model.average.get(field)
        cells.append("" if value is None else write(value))
    return tuple(cells)


def _idle(model: ModelSample) -> bool:
    """True where nothing went through it in the window and nothing is in it."""
    return model.rps == 0 and not model.pending and not model.running and not model.waiting


def _since(model: ModelSample, now: float) -> str:
    if model.last_inference is not None:
        return f"idle since {_moment(model.last_inference, now)}"
    return "never used" if model.requests == 0 else "idle"


def _moment(moment: float, now: float) -> str:
    """The time, with its date where that is not the picture's own; the picture's heading names the zone."""
    today = time.localtime(moment)[:3] == time.localtime(now)[:3]
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S", time.localtime(moment))


def _remarks(model: ModelSample, now: float) -> list[str]:
    found = []
    if model.window_batches:
        sizes = sorted(model.window_batches.items())
        found.append("executions by batch size: " + ", ".join(f"{size}: {count}" for size, count in sizes[:24]))
    failures = _failures(model.failures)
    if failures:
        found.append(f"failed since the server's start: {failures}")
    shown = inside(model)
    if model.pending:
        shown.insert(0, f"{model.pending} requests waiting")
    if model.last_inference is not None and not model.rps:
        shown.append(f"last inference {_moment(model.last_inference, now)}")
    if shown:
        found.append(", ".join(shown))
    return found


def _failures(failures: Failures) -> str:
    reasons = (
        ("BACKEND", failures.backend),
        ("REJECTED", failures.rejected),
        ("CANCELED", failures.cancelled),
        ("OTHER", failures.other),
    )
    return ", ".join(f"{count} {name}" for name, count in reasons if count)
