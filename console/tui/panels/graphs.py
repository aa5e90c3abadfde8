"""A panel that is a graph: the figure now, what it was, and the time axis with what happened."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from textual.strip import Strip

from console.domain.words import figures as form
from console.services.happenings import Happening, Severity
from console.services.history import Of
from console.tui.panels.panel import clip, text, title_line
from console.tui.panels.picture import Picture
from console.tui.theme import Look
from console.tui.widgets.graph import Column, Threshold, area, axis, beside_scale, scale
from console.tui.widgets.strip import line
from console.tui.widgets.timeline import Columns, Span, span

GUTTER = 6
"""Cells for the scale's labels."""
ROOMY = 8
"""A panel of so many lines has room for one of notes."""
MARK_ROLES = {
    Severity.INFO: "accent",
    Severity.GOOD: "good",
    Severity.WARNING: "warn",
    Severity.ERROR: "bad",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """What a graph is of.

    Attributes:
        name: Of the series and of the figure in ``Totals``.
        write: How its values are written.
        scale: How the scale's labels are written.
        top: The scale's fixed top; None lets it follow the values.
        least: The smallest top of a scale that follows them.
    """

    name: str
    write: Callable[[float], str]
    scale: Callable[[float], str]
    top: float | None = None
    least: float = 1.0


class Graph:
    """Draws one or two series over time; remembers its scale and its finished columns."""

    def __init__(self, figure: Figure, upper: Figure | None = None, roles: tuple[str, str] | None = None) -> None:
        self._figure = figure
        self._upper = upper
        self._roles = roles or ("graph", "line")
        self._columns, self._upper_columns = Columns(), Columns()
        self._top = 0.0

    def lines(
        self,
        picture: Picture,
        of: Of,
        width: int,
        height: int,
        look: Look,
        threshold: Threshold | None = None,
    ) -> list[Strip]:
        """The graph with its scale and time axis: ``height`` lines."""
        room = width - GUTTER
        if room < 4 or height < 2:
            return []
        shown = span(picture.until, picture.chosen.seconds, room)
        columns = self._filled(picture, of, shown)
        largest = max((column.outer for column in columns if column is not None), default=0.0)
        top = self._figure.top
        if top is None:
            top = self._top = scale(largest, self._top, self._figure.least)
        drawn = area(columns, top, height - 1, look, roles=self._roles, threshold=threshold)
        labels = (self._figure.scale(top), self._figure.scale(top / 2), "0")
        lines = beside_scale(drawn, labels, GUTTER, look)
        foot = [Segment(" " * GUTTER), *axis(shown, picture.until, look, marks(picture))]
        return [line(pieces, width) for pieces in (*lines, foot)]

    def _filled(self, picture: Picture, of: Of, shown: Span) -> list[Column | None]:
        lower = self._columns.of(picture.series(self._figure.name, of), shown)
        if self._upper is None:
            return [None if one is None else Column(one.mean, one.high) for one in lower]
        upper = self._upper_columns.of(picture.series(self._upper.name, of), shown)
        return [
            None
            if one is None and other is None
            else Column(one.mean if one else 0.0, (one.mean if one else 0.0) + (other.mean if other else 0.0))
            for one, other in zip(lower, upper, strict=True)
        ]


def marks(picture: Picture) -> list[tuple[float, str]]:
    """What happened, for the time axis; the worse of two in one column is drawn last."""
    order = list(Severity)
    found: Sequence[Happening] = sorted(picture.happenings, key=lambda one: order.index(one.severity))
    marked = [(one.time, MARK_ROLES[one.severity]) for one in found]
    if picture.chosen.moment is not None:
        marked.append((picture.chosen.moment, "strong"))
    return marked


def stretch(picture: Picture, figure: Figure, of: Of) -> str:
    """Lowest, mean and highest in the time shown."""
    series = picture.series(figure.name, of)
    found = series.summary(picture.until - picture.chosen.seconds) if series is not None else None
    if found is None:
        return ""
    return f"min {figure.write(found.low)}  avg {figure.write(found.mean)}  max {figure.write(found.high)}"


def at_moment(picture: Picture, figure: Figure, of: Of) -> tuple[float | None, str]:
    """The figure where the cursor is on the time axis, and that time."""
    moment = picture.chosen.moment or picture.until
    series = picture.series(figure.name, of)
    found = series.at(moment) if series is not None else None
    return found, time.strftime("%H:%M:%S", time.localtime(moment))


class GraphPanel:
    """A panel of one graph: title and figure, a line of notes where there is room, the graph."""

    id = ""
    title = ""
    figure: Figure

    roles = ("graph", "line")
    """Of the filling, and of what reached above the mean where a column holds several values."""

    def __init__(self) -> None:
        self._graph = Graph(self.figure, roles=self.roles)

    def of(self, picture: Picture) -> Of:
        """Whose figure it is."""
        return picture.chosen.model

    def now(self, picture: Picture) -> float | None:
        """The figure now."""
        found: float | None = getattr(picture.totals, self.figure.name)
        return found

    def why(self, picture: Picture) -> str:
        """Why there is none."""
        return picture.why(self.figure.name)

    def notes(self, picture: Picture) -> str:
        """What stands beside the figure."""
        return ""

    def role(self, picture: Picture, shown: float) -> str:
        """How the figure is to be seen."""
        return "strong"

    def threshold(self, picture: Picture) -> Threshold | None:
        """A line across the graph."""
        return None

    def draw(self, picture: Picture, width: int, height: int, look: Look, *, chosen: bool) -> list[Strip]:
        """See ``Panel``."""
        head, words = self._head(picture, look, height < ROOMY)
        lines = [title_line(look, self.title, width, chosen=chosen, left=[*head, text(look, f"  {words}", "dim")])]
        if height >= ROOMY:
            reason = self.why(picture) if self.now(picture) is None else ""
            second = reason or stretch(picture, self.figure, self.of(picture))
            lines.append(line([clip(look, second, width, "dim")], width))
        return [*lines, *self.below(picture, width, height - len(lines), look)][:height]

    def below(self, picture: Picture, width: int, height: int, look: Look) -> list[Strip]:
        """What stands under the title."""
        return self._graph.lines(picture, self.of(picture), width, height, look, self.threshold(picture))

    def _head(self, picture: Picture, look: Look, reason: bool) -> tuple[list[Segment], str]:
        if picture.chosen.moment is not None:
            shown, when = at_moment(picture, self.figure, self.of(picture))
            return [_figure(look, self.figure, shown, "accent")], f"at {when}"
        shown = self.now(picture)
        if shown is None:
            return [_figure(look, self.figure, None, "dim")], self.why(picture) if reason else ""
        role = self.role(picture, shown) if picture.live else "dim"
        return [_figure(look, self.figure, shown, role)], self.notes(picture)


def _figure(look: Look, figure: Figure, shown: float | None, role: str) -> Segment:
    return text(look, figure.write(shown) if shown is not None else form.NA, role if shown is not None else "dim")
