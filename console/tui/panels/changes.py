"""What happened lately, newest first; the graphs have a mark at each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.segment import Segment
from textual.strip import Strip

from console.services.happenings import Happening
from console.tui.panels.graphs import MARK_ROLES
from console.tui.panels.panel import clip, text, title_line
from console.tui.panels.picture import Picture, Told
from console.tui.theme import Look
from console.tui.widgets.strip import line

_DAY_S = 86400


class Changes:
    """The droplet's happenings."""

    id = "changes"
    title = "WHAT CHANGED"

    def draw(self, picture: Picture, width: int, height: int, look: Look, *, chosen: bool) -> list[Strip]:
        """See ``Panel``."""
        newest = sorted(picture.happenings, key=lambda one: one.time, reverse=True)
        if height == 1:
            left = _pieces(newest[0], picture, look, width) if newest else [text(look, "nothing yet", "dim")]
            return [title_line(look, self.title, width, chosen=chosen, left=left)]
        lines = [title_line(look, self.title, width, chosen=chosen)]
        if not newest:
            lines.append(line([text(look, "nothing since this console began to watch", "dim")], width))
        lines += [line(_pieces(happening, picture, look, width), width) for happening in newest[: height - 1]]
        return lines

    def figures(self, picture: Picture) -> Sequence[Told]:
        """One a happening."""
        return [
            Told(when(one.time, picture.now, full=True), one.severity.value, "", one.words)
            for one in sorted(picture.happenings, key=lambda one: one.time, reverse=True)
        ]

    def explain(self, picture: Picture) -> str:
        """See ``Panel``."""
        return "marked on the time axes above; the list of all droplets is one key away"


def when(moment: float, now: float, *, full: bool = False) -> str:
    """The time of day, with the date where that is another day."""
    there = time.localtime(moment)
    if full:
        return time.strftime("%Y-%m-%d %H:%M:%S", there)
    return time.strftime("%H:%M:%S" if abs(now - moment) < _DAY_S / 2 else "%d %b %H:%M", there)


def _pieces(happening: Happening, picture: Picture, look: Look, width: int) -> list[Segment]:
    moment = when(happening.time, picture.now)
    words = f"{happening.subject}: {happening.words}" if _needs_name(happening) else happening.words
    return [
        text(look, f"{moment} ", "dim"),
        Segment(look.symbols.event, look[MARK_ROLES[happening.severity]]),
        clip(look, f" {words}", max(width - len(moment) - 2, 1)),
    ]


def _needs_name(happening: Happening) -> bool:
    return happening.kind.value == "server" and bool(happening.subject)
