"""Where a request's time goes: waiting in the queue, and being computed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.strip import Strip

from console.domain.words import figures as form
from console.tui.panels.graphs import Figure, Graph
from console.tui.panels.panel import text, title_line
from console.tui.panels.picture import Picture, Told, told
from console.tui.theme import Look
from console.tui.widgets.gauge import stacked
from console.tui.widgets.strip import line

_PARTS = (
    ("queue_ms", "queue", "graph2"),
    ("input_ms", "input", "dim"),
    ("infer_ms", "infer", "graph"),
    ("output_ms", "output", "dim"),
)
"""Field of ``Totals``, Triton's word, the role it is drawn in."""
_GRAPH_FROM = 5


def _scale(value: float) -> str:
    """For the scale: 5 cells at most."""
    if value >= 1000:
        return f"{value / 1000:.3g}s"
    return f"{value:.3g}ms" if value >= 0.1 else f"{value * 1000:.0f}µs"


class Latency:
    """Mean times of successful requests."""

    id = "latency"
    title = "LATENCY"

    def __init__(self) -> None:
        compute = Figure("compute_ms", form.milliseconds, _scale, least=0.1)
        queue = Figure("queue_ms", form.milliseconds, _scale, least=0.1)
        self._graph = Graph(compute, queue, ("graph", "graph2"))

    def draw(self, picture: Picture, width: int, height: int, look: Look, *, chosen: bool) -> list[Strip]:
        """See ``Panel``."""
        totals = picture.totals
        if totals.request_ms is None:
            head = [text(look, form.NA, "dim"), text(look, f"  {picture.why('request_ms')}", "dim")]
        else:
            head = [text(look, form.milliseconds(totals.request_ms), "strong" if picture.live else "dim")]
            if totals.p95_ms is not None:
                head += [text(look, f"  p95 {form.milliseconds(totals.p95_ms)}", "dim")]
            head += _parts(picture, look, width - len(self.title) - 12)
        lines = [title_line(look, self.title, width, chosen=chosen, left=head)]
        if height >= _GRAPH_FROM:
            lines += self._graph.lines(picture, picture.chosen.model, width, height - 1, look)
        elif height >= 2:
            known = [(getattr(totals, field) or 0.0, look[role]) for field, _, role in _PARTS]
            lines.append(line([Segment("      "), *stacked(known, max(width - 7, 1), look)], width))
        return lines[:height]

    def figures(self, picture: Picture) -> Sequence[Told]:
        """See ``Panel``."""
        fields = [("request_ms", "request"), *((field, word) for field, word, _ in _PARTS), ("p95_ms", "p95")]
        return [
            told(f"{word} time", getattr(picture.totals, field), "ms", form.milliseconds, picture.why(field))
            for field, word in fields
        ]

    def explain(self, picture: Picture) -> str:
        """See ``Panel``."""
        if picture.totals.request_ms is None:
            return f"latency: n/a, because {picture.why('request_ms')}"
        tail = "" if picture.totals.p95_ms is not None else f"; p95 n/a, because {picture.why('p95_ms')}"
        return f"means per successful request in the server: queue above, compute below{tail}"


def _parts(picture: Picture, look: Look, room: int) -> list[Segment]:
    """The parts in Triton's order; where room is short, queue and infer alone."""
    found = _named(picture, look, [field for field, _, _ in _PARTS])
    if sum(piece.cell_length for piece in found) > room:
        found = _named(picture, look, ["queue_ms", "infer_ms"])
    return found


def _named(picture: Picture, look: Look, fields: Sequence[str]) -> list[Segment]:
    found: list[Segment] = []
    for field, word, role in _PARTS:
        value = getattr(picture.totals, field)
        if value is not None and field in fields:
            words = text(look, f" {word} {form.milliseconds(value)}")
            found += [Segment("  "), Segment(look.symbols.block, look[role]), words]
    return found
