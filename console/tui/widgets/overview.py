"""All panels of a droplet in one widget: it puts them side by side and repaints only the cells that changed."""

from __future__ import annotations

from collections.abc import Mapping

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from console.tui.panels.arrange import Place, arrange
from console.tui.panels.changes import Changes
from console.tui.panels.four import Dram, Errors, HitRate, Requests
from console.tui.panels.gpus import Gpus
from console.tui.panels.gpus import choices as gpu_choices
from console.tui.panels.host import Host
from console.tui.panels.latency import Latency
from console.tui.panels.models import Models
from console.tui.panels.models import choices as model_choices
from console.tui.panels.panel import Panel, clip
from console.tui.panels.picture import Picture
from console.tui.panels.status import Status
from console.tui.widgets.lines import Lines
from console.tui.widgets.strip import line


class Overview(Lines):
    """Draws a picture."""

    class Clicked(Message):
        """A panel was clicked.

        Attributes:
            panel: Its id.
            x: Cells from the panel's left edge; ``y`` lines from its top.
            width: The panel's cells.
            twice: It was a double click.
        """

        def __init__(self, panel: str, x: int, y: int, width: int, *, twice: bool) -> None:
            super().__init__()
            self.panel = panel
            self.x = x
            self.y = y
            self.width = width
            self.twice = twice

    class Scrolled(Message):
        """The wheel was turned over a panel."""

        def __init__(self, panel: str, by: int) -> None:
            super().__init__()
            self.panel = panel
            self.by = by

    def __init__(self) -> None:
        super().__init__()
        self._status = Status()
        self.models, self.gpus = Models(), Gpus()
        made: tuple[Panel, ...] = (
            self._status, HitRate(), Requests(), Errors(), Dram(), Latency(), self.models, self.gpus, Host(),
            Changes(),
        )  # fmt: skip
        self.panels: Mapping[str, Panel] = {panel.id: panel for panel in made}
        self.picture: Picture | None = None
        self.chosen = "models"
        self.large: str | None = None
        self._places: list[Place] = []

    def show(self, picture: Picture) -> None:
        """Draw this from now on."""
        self.picture = picture
        self.redraw()

    def choose(self, panel: str) -> None:
        """The panel that keys act on."""
        self.chosen = panel
        if self.large is not None:
            self.large = panel
        self.redraw()

    @property
    def on_screen(self) -> list[str]:
        """The panels that have room, in order."""
        if self.large is not None:
            return [panel for panel in self.panels if panel != "status"]
        return [place.panel for place in self._places if place.panel != "status"]

    def draw(self, width: int, height: int) -> list[Strip]:
        """See ``Lines``."""
        picture = self.picture
        if picture is None:
            return []
        self._places = arrange(width, height - 1, self._wanted(picture), self.large)
        rows: list[list[tuple[int, Strip]]] = [[] for _ in range(height)]
        for place in self._places:
            panel = self.panels[place.panel]
            chosen = place.panel == self.chosen
            drawn = panel.draw(picture, place.width, place.height, self.look, chosen=chosen)
            for number, strip in enumerate(drawn[: place.height]):
                rows[place.y + number].append((place.x, strip.adjust_cell_length(place.width)))
        rows[height - 1] = [(0, self._detail(picture, width))]
        return [_joined(pieces, width) for pieces in rows]

    def on_click(self, event: events.Click) -> None:
        """Choose what is under the pointer; twice makes it large."""
        place = self._under(event.x, event.y)
        if place is not None:
            twice = event.chain >= 2
            self.post_message(
                self.Clicked(place.panel, event.x - place.x, event.y - place.y, place.width, twice=twice)
            )

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel."""
        self._scroll(event.x, event.y, 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel."""
        self._scroll(event.x, event.y, -1)

    def _scroll(self, x: int, y: int, by: int) -> None:
        place = self._under(x, y)
        if place is not None:
            self.post_message(self.Scrolled(place.panel, by))

    def _under(self, x: int, y: int) -> Place | None:
        return next((place for place in self._places if place.holds(x, y)), None)

    def _wanted(self, picture: Picture) -> dict[str, int]:
        sample = picture.sample
        holders = sum(len(gpu.holders) for gpu in sample.gpus) if sample is not None else 0
        return {
            "status": self._status.lines_wanted(picture),
            "models": len(model_choices(sample)) + 1,
            "gpus": len(gpu_choices(sample)) + holders,
            "host": 5,
            "changes": len(picture.happenings) + 1,
        }

    def _detail(self, picture: Picture, width: int) -> Strip:
        words = self.panels[self.chosen].explain(picture)
        return line([clip(self.look, words, width, "dim")], width)


def _joined(pieces: list[tuple[int, Strip]], width: int) -> Strip:
    found: list[Segment] = []
    at = 0
    for x, strip in sorted(pieces, key=lambda piece: piece[0]):
        if x > at:
            found.append(Segment(" " * (x - at)))
        found += strip
        at = x + strip.cell_length
    return line(found, width)
