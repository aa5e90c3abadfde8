"""A droplet as a row of the fleet's table, and what is said about it below."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from console.domain.words import figures as form
from console.domain.words.figures import NA
from console.services.link import Phase
from console.settings.schema import Droplet
from console.tui.link_words import role as link_role
from console.tui.link_words import short
from console.tui.widgets.rows import Cell, Column, Row

if TYPE_CHECKING:
    from console.domain.telemetry.sample import Sample
    from console.services.board import DropletView

COLUMNS = (
    Column("name", "DROPLET", 12, align="<", grows=True, most=32),
    Column("link", "LINK", 13, align="<", priority=2),
    Column("triton", "TRITON", 8, align="<"),
    Column("models", "MODELS", 6, priority=5),
    Column("rps", "RPS", 7),
    Column("hit_rate", "HIT %", 5),
    Column("errors", "ERR %", 5),
    Column("p95", "P95", 7, priority=8),
    Column("queue", "QUEUE", 7, priority=9),
    Column("dram", "DRAM %", 6, priority=1),
    Column("memory", "MEM %", 5, priority=6),
    Column("temperature", "°C", 4, priority=4),
    Column("findings", "FINDINGS", 8, priority=3),
    Column("trend", "RPS, 2 MIN", 16, align="<", priority=7, sortable=False),
)
"""In order; ``priority`` says which go first on a narrow terminal."""
TREND_S = 120.0
_LEVELS = " ▁▂▃▄▅▆▇█"


def row(droplet: Droplet, view: DropletView, now: float) -> Row:
    """The droplet's row."""
    figures, fresh = view.totals, view.live
    cells = {
        "name": _name(droplet),
        "link": Cell(short(view.link), link_role(view.link), _link_order(view)),
        **_triton(view.sample, fresh),
        "rps": _figure(figures.rps, form.number, fresh),
        "hit_rate": _figure(figures.hit_rate, _percent, fresh),
        "errors": _figure(figures.error_percent, _percent, fresh, warn=0.0),
        "p95": _figure(figures.p95_ms, form.milliseconds, fresh),
        "queue": _figure(figures.queue_ms, form.milliseconds, fresh),
        "dram": _figure(figures.dram_percent, _percent, fresh),
        "memory": _figure(figures.memory_percent, "{:.0f}".format, fresh),
        "temperature": _figure(figures.temperature_c, "{:.0f}".format, fresh, warn=85.0),
        "findings": _findings(view),
        "trend": Cell(trend(view, now, 16), "graph" if fresh else "dim"),
    }
    return Row(droplet.name, cells, droplet.group or "")


def blank(droplet: Droplet) -> Row:
    """The row before anything is known."""
    return Row(droplet.name, {"name": _name(droplet), "link": Cell(short(None), "dim")}, droplet.group or "")


def remarks(view: DropletView, line: str) -> list[tuple[str, str]]:
    """What is said about a droplet, with roles of the theme: the line, what is wrong, missing figures."""
    said: list[tuple[str, str]] = []
    if not view.live:
        error = view.link.error if view.link is not None else None
        said.append((line if line.startswith(view.name) else f"{view.name}: {line}", link_role(view.link)))
        if error is not None and error.hint:
            said += [(part, "text") for part in error.hint.splitlines()]
    said += [(text, "bad") for text in view.problems]
    said += [(text, "warn") for text in view.advice]
    if view.sample is not None:
        said += [(text, "dim") for text in _missing(view)]
    return said or [(f"{view.name}: well", "dim")]


def trend(view: DropletView, now: float, width: int) -> str:
    """Requests per second over the last two minutes, a cell for each stretch."""
    series = view.series("rps")
    if series is None:
        return ""
    columns = series.columns(now - TREND_S, now, width)
    top = max((column.high for column in columns if column is not None), default=0.0)
    return "".join(_level(column.mean if column is not None else None, top) for column in columns)


def _level(value: float | None, top: float) -> str:
    if value is None or top <= 0:
        return " " if value is None else _LEVELS[1]
    return _LEVELS[max(1, min(8, round(8 * value / top)))]


def _missing(view: DropletView) -> list[str]:
    """Figures of the row that are not to be had, with the reason; those with the same reason together."""
    names = {
        "rps": "RPS", "hit_rate": "hit rate", "error_percent": "errors", "p95_ms": "p95", "queue_ms": "queue",
        "dram_percent": "DRAM", "memory_percent": "memory", "temperature_c": "temperature",
    }  # fmt: skip
    reasons: dict[str, list[str]] = {}
    for field, what in names.items():
        if getattr(view.totals, field) is None:
            reasons.setdefault(view.totals.why.get(field, form.UNEXPLAINED), []).append(what)
    return [f"{', '.join(what)}: {NA}, because {reason}" for reason, what in reasons.items()]


def _name(droplet: Droplet) -> Cell:
    role = "production" if droplet.production else "strong"
    own = None if droplet.production else droplet.colour
    return Cell(f" {droplet.name} " if droplet.production else droplet.name, role, droplet.name, own)


def _link_order(view: DropletView) -> float:
    """What wants a hand comes first."""
    order = (Phase.FAILED, Phase.WAITING, Phase.STALLED, Phase.CONNECTING, Phase.CLOSED, Phase.LIVE)
    return float(order.index(view.link.phase)) if view.link is not None else float(len(order))


def _triton(sample: Sample | None, fresh: bool) -> dict[str, Cell]:
    """State and models of the servers: the worst state, and the sums."""
    if sample is None:
        return {"triton": Cell(""), "models": Cell("")}
    if not sample.servers:
        return {"triton": Cell("none", "dim", "zz"), "models": Cell(NA, "dim")}
    worst = next((server for server in sample.servers if server.state != "ready"), sample.servers[0])
    role = "good" if worst.state == "ready" else "warn" if worst.state in ("starting", "restarting") else "bad"
    state = Cell(worst.state, role if fresh else "dim", worst.state)
    if any(server.models_total is None for server in sample.servers):
        return {"triton": state, "models": Cell(NA, "dim")}
    ready = sum(server.models_ready or 0 for server in sample.servers)
    total = sum(server.models_total or 0 for server in sample.servers)
    return {"triton": state, "models": Cell(f"{ready}/{total}", "text" if fresh else "dim", ready)}


def _figure(value: float | None, write: Callable[[float], str], fresh: bool, *, warn: float | None = None) -> Cell:
    """A figure; dim where it is not of now or not to be had, marked where it is above ``warn``."""
    if value is None:
        return Cell(NA if fresh else "", "dim")
    above = warn is not None and value > warn
    return Cell(write(value), ("warn" if above else "text") if fresh else "dim", value)


def _percent(value: float) -> str:
    return form.percent(value).removesuffix(" %")


def _findings(view: DropletView) -> Cell:
    wrong, hints = len(view.problems), len(view.advice)
    if wrong:
        return Cell(f"{wrong} bad", "bad", 1000 + wrong)
    return Cell(f"{hints} hints" if hints > 1 else "1 hint" if hints else "", "warn", hints)
