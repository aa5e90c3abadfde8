"""A droplet as it is drawn: the figures of one moment, and what was chosen to look at. Held still: a pause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from console.domain.telemetry.sample import GpuSample, ModelSample, Sample
from console.domain.telemetry.series import Series
from console.domain.telemetry.totals import ModelKey, Totals, find
from console.domain.thresholds import Thresholds
from console.domain.words.figures import NA, UNEXPLAINED
from console.domain.words.models import model_name
from console.services.board import DropletView
from console.services.happenings import Happening
from console.services.history import GpuKey, Of
from console.services.link import LinkState

WINDOWS = (60.0, 300.0, 900.0, 3600.0)
"""Seconds that the graphs may show."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a person chose to look at.

    Attributes:
        model: The model or server that the figures are of; None for all.
        gpu: The GPU that the DRAM figures are of; None for all.
        seconds: The time that the graphs show.
        moment: Where the cursor is on the time axis, Unix seconds; None for now.
    """

    model: ModelKey | None = None
    gpu: GpuKey | None = None
    seconds: float = WINDOWS[1]
    moment: float | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """What panels draw from.

    Attributes:
        view: The droplet on the board; for its series alone, everything else stands still here.
        until: The right edge of the graphs, Unix seconds.
        now: The moment that "ago" counts from.
        totals: The figures of what was chosen.
    """

    view: DropletView
    until: float
    now: float
    link: LinkState | None = None
    live: bool = False
    lost_at: float | None = None
    sample: Sample | None = None
    totals: Totals = field(default_factory=Totals)
    problems: Sequence[str] = ()
    advice: Sequence[str] = ()
    happenings: Sequence[Happening] = ()
    chosen: Chosen = field(default_factory=Chosen)
    thresholds: Thresholds = field(default_factory=Thresholds)

    @property
    def gpu(self) -> GpuSample | None:
        """The chosen GPU, where it is in the sample."""
        if self.chosen.gpu is None or self.sample is None:
            return None
        return next((gpu for gpu in self.sample.gpus if gpu.uuid == self.chosen.gpu.uuid), None)

    @property
    def model(self) -> tuple[ModelSample, str] | None:
        """The chosen model with its place in the sample; None where none, or all, are chosen."""
        if self.chosen.model is None or self.sample is None or self.chosen.model.whole_server:
            return None
        return find(self.sample, self.chosen.model)

    @property
    def subject(self) -> str:
        """Whose the figures are, in words."""
        key = self.chosen.model
        if key is None:
            return "all models"
        return f"all models of {key.server}" if key.whole_server else _key_name(key)

    def series(self, figure: str, of: Of = None) -> Series | None:
        """A figure's history."""
        return self.view.series(figure, of)

    def why(self, name: str) -> str:
        """Why a figure of ``totals`` is not to be had."""
        if self.sample is None:
            return self.link.words if self.link is not None else "nothing was heard of this droplet yet"
        return self.totals.why.get(name, UNEXPLAINED)

    def reason(self, pointer: str) -> str:
        """Why nothing stands at a place of the sample: its own reason, or the nearest above it."""
        told = self.sample.unavailable if self.sample is not None else {}
        while pointer:
            if pointer in told:
                return told[pointer]
            pointer = pointer.rpartition("/")[0]
        return UNEXPLAINED


def picture(view: DropletView, now: float, chosen: Chosen, thresholds: Thresholds) -> Picture:
    """The droplet as it is now."""
    until = now if view.sample is None or not view.live else view.sample.time
    return Picture(
        view=view,
        until=until,
        now=now,
        link=view.link,
        live=view.live,
        lost_at=view.lost_at,
        sample=view.sample,
        totals=view.totals_of(chosen.model),
        problems=view.problems,
        advice=view.advice,
        happenings=tuple(view.happenings),
        chosen=chosen,
        thresholds=thresholds,
    )


@dataclass(frozen=True, slots=True)
class Told:
    """One figure of a panel, for taking along.

    Attributes:
        name: What it is.
        value: The figure; None where it is not to be had.
        unit: "%", "ms", "B", "1/s", ...; empty for counts and words.
        text: As it is shown.
        why: The reason for a None.
    """

    name: str
    value: float | str | None
    unit: str
    text: str
    why: str | None = None


def told(
    name: str, value: float | None, unit: str, form: Callable[[float], str], why: str | Callable[[], str]
) -> Told:
    """A figure and how it is shown; ``why`` is used only where there is none."""
    if value is not None:
        return Told(name, value, unit, form(value))
    return Told(name, None, unit, NA, why if isinstance(why, str) else why())


def _key_name(key: ModelKey) -> str:
    return model_name(ModelSample(key.name, key.version, ""))
