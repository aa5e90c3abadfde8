"""A fleet that says what a test tells it to, and output that is kept."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

import pytest

from console.cli.output import Output
from console.domain.telemetry.sample import Sample
from console.remote.errors import RemoteError
from console.remote.prompts import Prompter
from console.services.link import Event, LinkState, Phase
from console.settings.schema import Droplet


class FakeFleet:
    """Hands out events one by one; then None, or what ``at_end`` raises."""

    def __init__(self, events: Iterable[Event], at_end: Callable[[], None] | None = None) -> None:
        self._events = list(events)
        self._at_end = at_end
        self.closed = False

    def events(self, timeout: float) -> Event | None:
        if self._events:
            return self._events.pop(0)
        if self._at_end is not None:
            self._at_end()
        return None

    def __enter__(self) -> FakeFleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed = True


class Opened:
    """What the command asked ``open_fleet`` for."""

    def __init__(self, fleet: FakeFleet) -> None:
        self.fleet = fleet
        self.droplets: tuple[Droplet, ...] = ()

    def __call__(self, droplets: Sequence[Droplet], prompter: Prompter) -> FakeFleet:
        self.droplets = tuple(droplets)
        return self.fleet


def install(
    monkeypatch: pytest.MonkeyPatch, events: Iterable[Event], at_end: Callable[[], None] | None = None
) -> Opened:
    """Put a fake fleet in the place of the real one."""
    opened = Opened(FakeFleet(events, at_end))
    monkeypatch.setattr("console.cli.status.open_fleet", opened)
    monkeypatch.setattr("console.cli.watch.open_fleet", opened)
    return opened


def sampled(sample: Sample) -> Event:
    return Event(sample.droplet, sample=sample)


def link(droplet: str, phase: Phase, words: str = "", error: RemoteError | None = None) -> Event:
    return Event(droplet, link=LinkState(phase, words or phase.value, 1_796_000_000.0, error=error))


def kept(*, unicode: bool = True, colour: bool = False, terminal: bool = False, width: int = 80) -> Output:
    out = io.TextIOWrapper(io.BytesIO(), "utf-8" if unicode else "ascii", newline="")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8" if unicode else "ascii", newline="")
    return Output(out, err, colour, width, terminal, unicode)


def text(stream: object) -> str:
    """What was written to one of ``kept``'s streams."""
    assert isinstance(stream, io.TextIOWrapper)
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode(stream.encoding)


def settings_file(folder: Path, content: str) -> str:
    file = folder / "config.yaml"
    file.write_text(content, encoding="utf-8")
    return str(file)
