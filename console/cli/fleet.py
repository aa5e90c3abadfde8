"""What the commands need of ``console.services.monitor``, and the one place that imports it."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

from console.remote.prompts import Prompter
from console.services.link import Event
from console.settings.schema import Droplet


class Watching(Protocol):
    """Droplets being watched, from entering to leaving it, as ``console.services.fleet.Fleet`` does it."""

    def events(self, timeout: float) -> Event | None:
        """The next event of any droplet, or None when none came within ``timeout`` seconds."""

    def __enter__(self) -> Watching: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_fleet(droplets: Sequence[Droplet], prompter: Prompter) -> Watching:
    """Watch droplets. Loads the SSH library, so nothing that needs no connection calls this."""
    from console.services.watching import watch

    fleet: Watching = watch(droplets, prompter=prompter)
    return fleet
