"""From the lines of a droplet's telemetry stream to complete, true samples."""

from __future__ import annotations

from collections.abc import Mapping

from console.domain.telemetry.gpu import gpus
from console.domain.telemetry.host import host
from console.domain.telemetry.merge import Document
from console.domain.telemetry.rates import CLOCK, FIRST, LOST, REBOOT, SHORT, SHORTEST, STREAM, Window
from console.domain.telemetry.reasons import Reasons
from console.domain.telemetry.sample import Sample
from console.domain.telemetry.server import ServerMemory, servers
from console.domain.telemetry.wire import Assembler, Tick

_NOTHING: Document = {}


class SampleBuilder:
    """Makes samples of one droplet's ticks; remembers the tick before, and nothing older.

    Attributes:
        problem: What was wrong with the last line that could not be used; None while all is well.
        unusable: Lines of this stream that could not be used.
    """

    def __init__(self, droplet: str) -> None:
        self._droplet = droplet
        self._stream: str | None = None
        self._lines = Assembler()
        self._before: Tick | None = None
        self._base: Tick | None = None
        """The tick with which the next window begins: the one before, unless that came too soon."""
        self._new_stream = False
        self._servers: dict[str, ServerMemory] = {}

    @property
    def problem(self) -> str | None:
        """What was wrong with the last line that could not be used."""
        return self._lines.problem

    @property
    def unusable(self) -> int:
        """Lines of this stream that could not be used."""
        return self._lines.unusable

    def feed(self, line: Mapping[str, object], *, arrived: float, stream: str) -> Sample | None:
        """Take one line of the stream.

        Args:
            line: The line as JSON gave it; nothing in it is trusted.
            arrived: When it arrived, Unix seconds by this side's clock.
            stream: The stream's own id: a new one begins anew, whatever its numbers are.

        Returns:
            The sample, or None where the line makes none: a duplicate, a line that cannot be used (``problem``
            says why), or a patch on a document that is lost.
        """
        if stream != self._stream:
            self._new_stream = self._stream is not None
            self._stream = stream
            self._lines = Assembler()
        tick = self._lines.add(line)
        if tick is None:
            return None
        window = self._window(tick)
        sample = self._sample(tick, window, arrived, stream)
        self._before = tick
        if window.gap != SHORT:
            self._base = tick
        self._new_stream = False
        return sample

    def _window(self, tick: Tick) -> Window:
        base = self._base
        if base is None:
            return Window(0.0, FIRST)
        if _boot(tick) != _boot(base):
            return Window(0.0, REBOOT)
        if self._new_stream:
            return Window(0.0, STREAM)
        seconds = tick.mono - base.mono
        if seconds <= 0:
            return Window(0.0, CLOCK)
        if tick.lost:
            return Window(seconds, LOST)
        return Window(seconds, SHORT if seconds < SHORTEST else None)

    def _sample(self, tick: Tick, window: Window, arrived: float, stream: str) -> Sample:
        reasons = Reasons(tick.reasons)
        doc = tick.doc
        earlier = _NOTHING if self._base is None else self._base.doc.get("host", _NOTHING)
        driver = doc.get("driver", _NOTHING)
        found, self._servers = servers(doc.get("servers", _NOTHING), self._servers, tick.mono, window.gap, reasons)
        interval, no_interval = self._interval(tick, window)
        sample = Sample(
            droplet=self._droplet,
            time=arrived,
            seq=tick.seq,
            stream=stream,
            interval=interval,
            missed=tick.missed,
            host=host(doc.get("host", _NOTHING), earlier, tick.mono, window, reasons),
            gpus=gpus(doc.get("gpus", _NOTHING), driver.get("source"), reasons),
            driver_version=driver.get("version"),
            gpu_source=driver.get("source"),
            servers=found,
            unavailable=reasons.found,
            clock_skew_s=tick.time - arrived,
        )
        reasons.explain(sample, "", "", _SOURCES, no_interval)
        return sample

    def _interval(self, tick: Tick, window: Window) -> tuple[float | None, dict[str, str]]:
        """Seconds since the previous sample, where both belong to one stream and its clock went forward."""
        if self._before is None or window.gap in (FIRST, REBOOT, STREAM, CLOCK):
            return None, {"interval": window.gap or FIRST}
        seconds = tick.mono - self._before.mono
        return (seconds, {}) if seconds > 0 else (None, {"interval": CLOCK})


_SOURCES = {"driver_version": "driver/version", "gpu_source": "driver/source"}


def _boot(tick: Tick) -> object:
    return tick.doc.get("host", _NOTHING).get("boot_id")
