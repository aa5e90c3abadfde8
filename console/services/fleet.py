"""Several watched droplets, and one place to read what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from console.services.events import EventQueue
from console.services.link import Event
from console.services.monitor import Line, Monitor

CLOSE_S = 2.0
"""All monitors together are waited for this long; they are daemons and end with the process anyway."""


class Fleet:
    """Monitors, one a droplet, that feed one bounded queue.

    Args:
        lines: For each droplet's name, how its telemetry line is opened.
        intervals: For each droplet's name, seconds between its ticks.

    Use it as a context manager: it starts on entry, and every line is closed on exit.
    """

    def __init__(self, lines: Mapping[str, Callable[[], Line]], intervals: Mapping[str, float]) -> None:
        self._events = EventQueue()
        self._monitors = {
            name: Monitor(name, open_line=open_line, emit=self._events.put, interval=intervals[name])
            for name, open_line in lines.items()
        }

    @property
    def droplets(self) -> Iterable[str]:
        """Their names, in the order given."""
        return self._monitors.keys()

    @property
    def dropped(self) -> Mapping[str, int]:
        """Samples that a slow reader lost, by droplet."""
        return self._events.dropped

    def start(self) -> None:
        """Begin to connect to all of them."""
        for monitor in self._monitors.values():
            monitor.start()

    def events(self, timeout: float) -> Event | None:
        """The next event of any droplet, or None when none came within ``timeout`` seconds."""
        return self._events.get(timeout)

    def retry(self, droplet: str) -> None:
        """Try a droplet again now that a person did what was needed."""
        self._monitors[droplet].retry()

    def close(self) -> None:
        """End every stream and connection."""
        for monitor in self._monitors.values():
            monitor.stop(timeout=0)
        share = CLOSE_S / max(len(self._monitors), 1)
        for monitor in self._monitors.values():
            monitor.stop(timeout=share)
        self._events.close()

    def __enter__(self) -> Fleet:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
