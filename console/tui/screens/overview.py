"""One droplet: the four that matter, where time goes, models, GPUs, host, and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.domain.telemetry.sample import ServerSample
from console.domain.telemetry.totals import ModelKey, totals
from console.services.actions import OVERVIEW
from console.tui.link_words import full, role, round_trip
from console.tui.panels import gpus, models
from console.tui.panels.graphs import GUTTER
from console.tui.panels.picture import WINDOWS, Chosen, Picture, picture
from console.tui.screens.base import ConsoleScreen, bindings
from console.tui.widgets.header import Heading
from console.tui.widgets.overview import Overview
from console.tui.widgets.timeline import span

_GRAPHS = frozenset({"hit_rate", "rps", "errors", "dram", "latency"})


class OverviewScreen(ConsoleScreen):
    """See the module.

    Args:
        name: The droplet.
        model: The model or server to look at from the start.
    """

    MODE = OVERVIEW
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(OVERVIEW),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("home", "move(-100000)", show=False),
        Binding("end", "move(100000)", show=False),
    ]

    def __init__(self, name: str, model: ModelKey | None = None) -> None:
        super().__init__()
        self._droplet = name
        self._overview = Overview()
        self._chosen = Chosen(model=model)
        self._held: Picture | None = None
        """The picture of a pause."""

    @property
    def overview(self) -> Overview:
        """The panels."""
        return self._overview

    @property
    def picture(self) -> Picture | None:
        """What is shown."""
        return self._overview.picture

    def body(self) -> ComposeResult:
        """See ``ConsoleScreen``."""
        yield self._overview

    def heading(self, now: float) -> Heading:
        """See ``ConsoleScreen``."""
        droplet, view = self.state.droplets[self._droplet], self.state.board.view(self._droplet)
        host = view.sample.host.hostname if view.sample is not None else None
        notes = [host if host and host != self._droplet else "", round_trip(view.link)]
        return Heading(
            self._droplet,
            colour=droplet.colour,
            production=droplet.production,
            state=full(view.link, now, view.lost_at),
            role=role(view.link),
            note="  ".join(note for note in notes if note),
            badges=self.state.badges,
            clock=self.clock(now),
        )

    def update_from(self, changed: Set[str], now: float) -> None:
        """See ``ConsoleScreen``."""
        if self._droplet in changed:
            self._show(now)

    def tick(self, now: float) -> None:
        """See ``ConsoleScreen``; without a line, the gap in the graphs grows."""
        super().tick(now)
        if not self.state.board.view(self._droplet).live:
            self._show(now)

    def copied(self) -> str:
        """The figures of the panel that is chosen, a line each."""
        if self.picture is None:
            return ""
        found = self._overview.panels[self._overview.chosen].figures(self.picture)
        return "\n".join(f"{one.name}\t{one.text}" + (f"\t{one.why}" if one.why else "") for one in found)

    @property
    def export_name(self) -> str:
        """See ``ConsoleScreen``."""
        return self._droplet

    def exported(self) -> Mapping[str, str]:
        """See ``ConsoleScreen``: the history as CSV, everything that is shown as JSON."""
        from console.tui.panels.taken import contents

        return contents(self.picture, self._overview.panels.values()) if self.picture is not None else {}

    def action_back(self) -> None:
        """One step back: from a large panel, the cursor in time, a chosen model; then to the fleet."""
        if self._overview.large is not None:
            self._overview.large = None
            self._overview.redraw()
        elif self._chosen.moment is not None:
            self._choose(replace(self._chosen, moment=None))
        elif self._chosen.model is not None or self._chosen.gpu is not None:
            self._choose(replace(self._chosen, model=None, gpu=None))
        else:
            super().action_back()

    def action_pause(self) -> None:
        """See the table of actions."""
        self._held = None if self.state.paused else self.picture
        super().action_pause()

    def action_zoom_in(self) -> None:
        """See the table of actions."""
        self._zoom(-1)

    def action_zoom_out(self) -> None:
        """See the table of actions."""
        self._zoom(1)

    def action_maximise(self) -> None:
        """See the table of actions."""
        self._overview.large = None if self._overview.large is not None else self._overview.chosen
        self._overview.redraw()

    def action_next_panel(self) -> None:
        """See the table of actions."""
        self._step_panel(1)

    def action_previous_panel(self) -> None:
        """See the table of actions."""
        self._step_panel(-1)

    def action_next_droplet(self) -> None:
        """See the table of actions."""
        self._step_droplet(1)

    def action_previous_droplet(self) -> None:
        """See the table of actions."""
        self._step_droplet(-1)

    def action_next_server(self) -> None:
        """See the table of actions."""
        sample = self.picture.sample if self.picture is not None else None
        names = [server.name for server in sample.servers] if sample is not None else []
        if len(names) < 2:
            self.say("there is one Triton server on this droplet" if names else "there is no Triton server here")
            return
        keys = [None, *(ModelKey(name, "", "") for name in names)]
        now = self._chosen.model
        here = ModelKey(now.server, "", "") if now is not None else None
        self._choose(
            replace(self._chosen, model=keys[(keys.index(here) + 1) % len(keys)] if here in keys else None)
        )

    def action_earlier(self) -> None:
        """See the table of actions."""
        self._move_moment(-1)

    def action_later(self) -> None:
        """See the table of actions."""
        self._move_moment(1)

    def action_forward(self) -> None:
        """Bring Triton's ports here, and show how to call the chosen model."""
        from console.services.forward import Forwards
        from console.tui.modals.forwarded import STOP, ForwardedModal

        found = _to_call(self.picture)
        if found is None:
            self.say("there is no Triton server to forward", "warn")
            return
        server, model = found
        place, kept = (self._droplet, server.name), self.state.forwards
        if place not in kept:
            bridge, droplet = self.console.bridge, self._droplet
            try:
                kept[place] = Forwards(
                    lambda host, port, seconds: bridge.dial(droplet, host, port, seconds), server
                )
            except OSError as error:
                self.say(f"no port could be opened here: {error.strerror}", "bad")
                return

        def closed(answer: str | None) -> None:
            if answer == STOP:
                kept.pop(place).close()
                self.say("the ports are given back")

        name = f"Triton {server.name} of {self._droplet}"
        self.console.push_screen(ForwardedModal(name, kept[place], model), closed)

    def action_move(self, by: int) -> None:
        """Move the cursor of the list that is chosen; models where it is none."""
        sample = self.picture.sample if self.picture is not None else None
        if self._overview.chosen == "gpus":
            listed = gpus.choices(sample)
            place = listed.index(self._chosen.gpu) if self._chosen.gpu in listed else 0
            self._choose(replace(self._chosen, gpu=listed[_clamped(place + by, len(listed))]))
            return
        keys = models.choices(sample)
        at = keys.index(self._chosen.model) if self._chosen.model in keys else 0
        self._choose(replace(self._chosen, model=keys[_clamped(at + by, len(keys))]))

    def on_overview_clicked(self, event: Overview.Clicked) -> None:
        """Choose the panel; in a graph, the moment; in a list, the line; twice makes it large."""
        if event.panel != "status":
            self._overview.choose(event.panel)
        if event.twice:
            self.action_maximise()
        elif event.panel in _GRAPHS and event.y > 0 and self.picture is not None:
            room = event.width - GUTTER
            column = event.x - GUTTER
            if 0 <= column < room:
                shown = span(self.picture.until, self._chosen.seconds, room)
                self._choose(replace(self._chosen, moment=shown.moment(column)))
        elif event.panel == "models" and 0 < event.y <= len(self._overview.models.drawn):
            self._choose(replace(self._chosen, model=self._overview.models.drawn[event.y - 1]))
        elif event.panel == "gpus" and 0 < event.y <= len(self._overview.gpus.drawn):
            self._choose(replace(self._chosen, gpu=self._overview.gpus.drawn[event.y - 1]))

    def on_overview_scrolled(self, event: Overview.Scrolled) -> None:
        """The wheel moves a list's cursor, and zooms graphs."""
        if event.panel in _GRAPHS:
            self._zoom(event.by)
        else:
            self._overview.choose(event.panel if event.panel != "status" else self._overview.chosen)
            self.action_move(event.by)

    def _show(self, now: float) -> None:
        view = self.state.board.view(self._droplet)
        if not self.state.paused:
            self._held = None
            self._overview.show(picture(view, now, self._chosen, self.state.settings.thresholds))
        elif self._held is None:
            self._held = picture(view, now, self._chosen, self.state.settings.thresholds)
            self._overview.show(self._held)

    def _choose(self, chosen: Chosen) -> None:
        """Look at something else, at the same moment where the picture is held still."""
        self._chosen = chosen
        before = self._held if self.state.paused else None
        if before is not None:
            figures = totals(before.sample, chosen.model) if before.sample is not None else before.totals
            self._held = replace(before, chosen=chosen, totals=figures)
            self._overview.show(self._held)
        else:
            self._show(self.console.now())

    def _zoom(self, by: int) -> None:
        place = WINDOWS.index(self._chosen.seconds)
        self._choose(replace(self._chosen, seconds=WINDOWS[_clamped(place + by, len(WINDOWS))]))

    def _step_panel(self, by: int) -> None:
        there = self._overview.on_screen
        if there:
            place = there.index(self._overview.chosen) if self._overview.chosen in there else -by
            self._overview.choose(there[(place + by) % len(there)])

    def _step_droplet(self, by: int) -> None:
        names = list(self.state.droplets)
        if len(names) > 1:
            self.console.open_droplet(names[(names.index(self._droplet) + by) % len(names)])

    def _move_moment(self, by: int) -> None:
        if self.picture is None:
            return
        until = self.picture.until
        moment = (
            self._chosen.moment if self._chosen.moment is not None else until
        ) + by * self._chosen.seconds / 60
        inside = until - self._chosen.seconds < moment < until
        at_start = moment <= until - self._chosen.seconds
        self._choose(replace(self._chosen, moment=moment if inside else self._chosen.moment if at_start else None))


def _to_call(shown: Picture | None) -> tuple[ServerSample, tuple[str, str] | None] | None:
    """The server to forward, and the model to call: the chosen ones, or the first that serve."""
    sample = shown.sample if shown is not None else None
    if shown is None or sample is None or not sample.servers:
        return None
    key = shown.chosen.model
    ready = [server for server in sample.servers if server.state == "ready"] or list(sample.servers)
    server = next((one for one in sample.servers if key is not None and one.name == key.server), ready[0])
    if key is not None and not key.whole_server:
        return server, (key.name, key.version)
    busiest = sorted((one for one in server.models if one.state == "READY"), key=lambda one: -(one.rps or 0.0))
    return server, (busiest[0].name, busiest[0].version) if busiest else None


def _clamped(place: int, count: int) -> int:
    return min(max(place, 0), count - 1)
