"""The models: what they serve now, line by line; the line under the cursor is what the graphs are of."""

from __future__ import annotations

import time
from collections.abc import Sequence

from textual.strip import Strip

from console.domain.telemetry.sample import ModelSample, Sample, ServerSample
from console.domain.telemetry.totals import ModelKey, Totals, totals
from console.domain.words import figures as form
from console.domain.words.models import condition, inside, model_name
from console.tui.panels.panel import text, title_line
from console.tui.panels.picture import Picture, Told, told
from console.tui.panels.rows import Entry, entry_line, heading, visible
from console.tui.theme import Look
from console.tui.widgets.rows import Cell, Column
from console.tui.widgets.strip import line

COLUMNS = (
    Column("name", "MODELS", 16, "<", grows=True, most=36),
    Column("rps", "RPS", 7),
    Column("hit_rate", "HIT RATE", 8),
    Column("mean_batch", "BATCH", 6, priority=2),
    Column("fill_percent", "FILL", 6, priority=4),
    Column("error_percent", "ERRORS", 7),
    Column("queue_ms", "QUEUE", 8, priority=1),
    Column("infer_ms", "INFER", 8, priority=1),
    Column("pending", "WAIT", 5, priority=3),
    Column("average", "HIT SINCE LOAD", 14, priority=5),
    Column("last", "LAST REQUEST", 12, priority=6),
)
_FORMS = {
    "rps": form.number,
    "hit_rate": form.percent,
    "mean_batch": form.number,
    "fill_percent": form.whole_percent,
    "error_percent": form.percent,
    "queue_ms": form.milliseconds,
    "infer_ms": form.milliseconds,
    "pending": form.count,
}
_NAMES = {
    "rps": ("requests", "1/s"),
    "hit_rate": ("batch hit rate", "%"),
    "mean_batch": ("mean batch", ""),
    "fill_percent": ("fill", "%"),
    "error_percent": ("errors", "%"),
    "queue_ms": ("queue", "ms"),
    "infer_ms": ("compute infer", "ms"),
    "pending": ("waiting", ""),
}
_SAMPLE_NAMES = {"infer_ms": "compute_infer_ms"}


def choices(sample: Sample | None) -> list[ModelKey | None]:
    """What can be looked at, in the order of the list: all, then each server's and model's own."""
    found: list[ModelKey | None] = [None]
    if sample is None:
        return found
    for server in sample.servers:
        if len(sample.servers) > 1:
            found.append(ModelKey(server.name, "", ""))
        found += [ModelKey(server.name, model.name, model.version) for model in sorted(server.models, key=_rank)]
    return found


def _rank(model: ModelSample) -> int:
    """What failed to load first, what serves next, what nobody loaded last."""
    return 1 if model.state == "READY" else 0 if _failed(model) else 2


def _failed(model: ModelSample) -> bool:
    return model.state == "UNAVAILABLE" and (model.reason or "") not in ("", "unloaded")


class Models:
    """All models of all servers."""

    id = "models"
    title = "MODELS"

    def __init__(self) -> None:
        self.drawn: list[ModelKey | None] = []
        """What stands on each line under the heading."""

    def draw(self, picture: Picture, width: int, height: int, look: Look, *, chosen: bool) -> list[Strip]:
        """See ``Panel``."""
        sample = picture.sample
        self.drawn = []
        if sample is None or not sample.servers:
            reason = picture.why("rps")
            return [title_line(look, self.title, width, chosen=chosen, left=[text(look, reason, "dim")])]
        keys = choices(sample)
        single = _single(keys)
        listed = keys[1:] if single else keys
        cursor = listed.index(picture.chosen.model) if picture.chosen.model in listed else 0
        lines = [heading(COLUMNS, width, look, chosen=chosen)]
        window = visible(len(listed), cursor, height - 1)
        for number in window:
            entry = _entry(sample, listed[number])
            under = number == cursor and not single
            lines.append(entry_line(entry, COLUMNS, width, look, under_cursor=under, dim=not picture.live))
            self.drawn.append(listed[number])
        left_out = len(listed) - len(window)
        if left_out and len(lines) > 2:
            more = f"{left_out + 1} more" if len(window) < len(listed) else ""
            lines[-1] = line([text(look, more, "dim")], width)
            self.drawn.pop()
        return lines

    def figures(self, picture: Picture) -> Sequence[Told]:
        """The figures of the line under the cursor."""
        found = []
        for name, (words, unit) in _NAMES.items():
            value = getattr(picture.totals, name)
            found.append(told(f"{picture.subject}: {words}", value, unit, _FORMS[name], picture.why(name)))
        return found

    def explain(self, picture: Picture) -> str:
        """What does not fit the line under the cursor."""
        found = picture.model
        if found is None:
            return f"{picture.totals.models} ready models; the line under the cursor is what the graphs are of"
        model, _ = found
        if model.state != "READY":
            return f"{model_name(model)}: {condition(model)}"
        parts = [model_name(model), *_scheduling(model), *inside(model)]
        if picture.totals.hit_rate is None:
            parts.append(f"hit rate n/a, because {picture.why('hit_rate')}")
        return ", ".join(parts)


def _single(keys: Sequence[ModelKey | None]) -> bool:
    return len(keys) == 2


def _entry(sample: Sample, key: ModelKey | None) -> Entry:
    if key is None:
        return _summed("all models", totals(sample))
    server = next(server for server in sample.servers if server.name == key.server)
    if key.whole_server:
        if server.state != "ready":
            return Entry({"name": Cell(server.name)}, _server_words(server), "bad")
        return _summed(server.name, totals(sample, key))
    model = next(model for model in server.models if (model.name, model.version) == key[1:])
    indent = "  " if len(sample.servers) > 1 else ""
    name = Cell(indent + model_name(model))
    if model.state != "READY":
        return Entry({"name": name}, condition(model), "bad" if _failed(model) else "dim")
    cells = {key: _cell(key, getattr(model, _SAMPLE_NAMES.get(key, key))) for key in _FORMS}
    average = model.average.get("hit_rate")
    cells["average"] = Cell(form.percent(average) if average is not None else form.NA, "dim")
    last = model.last_inference
    cells["last"] = Cell(time.strftime("%H:%M:%S", time.localtime(last)) if last is not None else "never", "dim")
    return Entry({"name": name, **cells})


def _summed(name: str, figures: Totals) -> Entry:
    cells = {key: _cell(key, getattr(figures, key)) for key in _FORMS}
    return Entry({"name": Cell(name, "strong"), **cells})


def _cell(key: str, value: float | None) -> Cell:
    if value is None:
        return Cell(form.NA, "dim")
    wrong = key == "error_percent" and value > 0
    nothing = value == 0 and key in ("rps", "pending", "error_percent")
    return Cell(_FORMS[key](value), "bad" if wrong else "dim" if nothing else "text")


def _server_words(server: ServerSample) -> str:
    return f"{server.state}: {server.reason}" if server.reason else server.state


def _scheduling(model: ModelSample) -> list[str]:
    parts = [f"backend {model.backend}"] if model.backend else []
    if model.scheduling:
        parts.append(model.scheduling)
    if model.max_batch_size is not None:
        parts.append(f"max_batch_size {model.max_batch_size}")
    if model.decoupled:
        parts.append("decoupled")
    return parts
