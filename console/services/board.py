"""What the screens look at: the last word of every droplet, its figures over time, and what happened.

Fed from one thread with the events of ``Watch.events``; nothing here blocks, and memory is bounded however long it
runs. The clock is given: ``now`` is Unix seconds by this side's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from console.domain.telemetry.sample import Sample
from console.domain.telemetry.series import Series
from console.domain.telemetry.totals import ModelKey, Totals, totals
from console.domain.thresholds import Thresholds
from console.domain.words import problems as judge
from console.remote.errors import FailureKind
from console.services.happenings import Happening, Kind, Severity, between, first_seen, of_line
from console.services.history import BATCHES_S, History, Of
from console.services.link import Event, LinkState, Phase

_ALL_POINTS = 72_000
_MOST_POINTS, _FEWEST_POINTS = 3600, 600
"""Ticks that each series keeps: an hour at one a second for up to 20 droplets, less for more."""
HAPPENINGS = 200
"""Kept for each droplet, and ten times that over all."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What an event changed.

    Attributes:
        droplet: Whose.
        sample: There is a new sample.
        link: The line's state changed.
        happenings: What happened, in order.
    """

    droplet: str
    sample: bool = False
    link: bool = False
    happenings: tuple[Happening, ...] = ()


class DropletView:
    """One droplet as it is known now. Read it in the thread that feeds the board; nobody but the board writes it.

    Attributes:
        name: The droplet.
        link: The line's state; None before anything was said.
        lost_at: Since when the line is not live, Unix seconds; None while it is, or before it ever was.
        sample: The latest sample, kept while the line is down; None before the first.
        totals: The latest sample's figures over all models and GPUs.
        problems: What is not well, one sentence each, by the latest sample.
        advice: What the thresholds say about it.
        happenings: The last ones, oldest first.
        revision: Grows with every change.
    """

    def __init__(self, name: str, points: int, thresholds: Thresholds) -> None:
        self.name = name
        self.link: LinkState | None = None
        self.lost_at: float | None = None
        self.sample: Sample | None = None
        self.totals = Totals()
        self.problems: Sequence[str] = ()
        self.advice: Sequence[str] = ()
        self.happenings: deque[Happening] = deque(maxlen=HAPPENINGS)
        self.revision = 0
        self._history = History(points)
        self._thresholds = thresholds
        self._failures_told: set[FailureKind] = set()

    @property
    def live(self) -> bool:
        """The figures are of now."""
        return self.link is not None and self.link.phase is Phase.LIVE

    def totals_of(self, only: ModelKey | None) -> Totals:
        """The latest sample's figures of one model, or of all."""
        if only is None or self.sample is None:
            return self.totals
        return totals(self.sample, only)

    def series(self, figure: str, of: Of = None) -> Series | None:
        """A figure over time, of a model, a GPU, or all; see ``console.services.history``."""
        return self._history.series(figure, of)

    def batches(self, until: float, seconds: float = BATCHES_S, of: ModelKey | None = None) -> dict[int, int]:
        """Executions by batch size in the ``seconds`` before ``until``."""
        return self._history.batches(until, seconds, of)

    def feed(self, event: Event) -> Changes:
        """Take in an event of this droplet."""
        found: list[Happening] = []
        if event.link is not None:
            found += self._take_link(event.link)
        if event.sample is not None:
            found += self._take_sample(event.sample)
        self.happenings.extend(found)
        self.revision += 1
        return Changes(self.name, event.sample is not None, event.link is not None, tuple(found))

    def _take_link(self, link: LinkState) -> list[Happening]:
        happening = of_line(self.link, link, self.name, self.lost_at)
        if link.phase is Phase.LIVE:
            self.lost_at = None
            self._failures_told.clear()
        elif self.lost_at is None and self.live:
            self.lost_at = link.since
        if link.error is not None and happening is not None:
            if link.error.kind in self._failures_told:
                happening = None  # one try after the other fails in the same way
            self._failures_told.add(link.error.kind)
        self.link = link
        return [happening] if happening is not None else []

    def _take_sample(self, sample: Sample) -> list[Happening]:
        before, self.sample = self.sample, sample
        self.totals = totals(sample)
        self.problems = judge.problems(sample)
        self.advice = judge.advice(sample, self._thresholds)
        found = first_seen(sample) if before is None else between(before, sample)
        if not self._history.add(sample, self.totals):
            words = "this machine's clock was set back: the graphs begin anew"
            found.append(Happening(sample.time, self.name, Kind.LINE, Severity.WARNING, words))
        return found


class Board:
    """All droplets, by name.

    Args:
        droplets: Their names, in the order they are to be shown.
        thresholds: Where advice begins.
        points: Ticks that each series keeps; by the number of droplets where None.
    """

    def __init__(
        self, droplets: Iterable[str], *, thresholds: Thresholds | None = None, points: int | None = None
    ) -> None:
        names = list(dict.fromkeys(droplets))
        if points is None:
            points = max(_FEWEST_POINTS, min(_MOST_POINTS, _ALL_POINTS // max(len(names), 1)))
        self._views = {name: DropletView(name, points, thresholds or Thresholds()) for name in names}
        self.happenings: deque[Happening] = deque(maxlen=10 * HAPPENINGS)
        """The last ones of all droplets, as they were learnt."""

    @property
    def droplets(self) -> Sequence[str]:
        """Their names, in order."""
        return tuple(self._views)

    def view(self, name: str) -> DropletView:
        """One droplet; KeyError for a name that is none of them."""
        return self._views[name]

    def feed(self, event: Event) -> Changes:
        """Take in an event; those of unknown droplets raise KeyError."""
        changes = self._views[event.droplet].feed(event)
        self.happenings.extend(changes.happenings)
        return changes
