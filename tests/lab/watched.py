"""A droplet watched the way the command line watches it, with everything it said kept for a test to look at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pytest

from console.domain.telemetry.sample import ModelSample, Sample, ServerSample
from console.remote.prompts import NoPrompter
from console.services.link import Event, LinkState
from console.services.watching import watch
from console.settings.schema import Droplet
from tests.lab.machine import Machine


class Watched:
    """Follows one lab droplet from entering to leaving.

    Args:
        machine: The droplet.
        state: A folder for the known hosts; this side's own is not touched.
        at: Address and port where a proxy stands before it.
        user: Who logs in.
        interval: Seconds between ticks.
    """

    def __init__(
        self,
        machine: Machine,
        state: Path,
        *,
        at: tuple[str, int] | None = None,
        user: str = "root",
        interval: float = 1.0,
    ) -> None:
        host, port = at or (machine.address, machine.ssh_port)
        state.mkdir(parents=True, exist_ok=True)
        known_hosts = state / "known_hosts"
        known_hosts.write_text(machine.known_hosts_for(host, port))
        droplet = Droplet(
            name=machine.name,
            host=host,
            port=port,
            user=user,
            identity=(str(machine.key(user)),),
            interval=interval,
        )
        self._fleet = watch([droplet], prompter=NoPrompter(), known_hosts=known_hosts)
        self._changed = threading.Condition()
        self._over = False
        self._events: list[tuple[float, Event]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Watched:
        self._fleet.__enter__()
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._fleet.close()
        self._reader.join(5)

    @property
    def samples(self) -> list[Sample]:
        """All of them so far."""
        with self._changed:
            return [event.sample for _, event in self._events if event.sample is not None]

    @property
    def links(self) -> list[LinkState]:
        """All states of the line so far."""
        with self._changed:
            return [event.link for _, event in self._events if event.link is not None]

    def until(self, wanted: Callable[[Event], object], seconds: float, since: float = 0.0) -> float:
        """Wait for an event.

        Args:
            wanted: True for the event that is waited for.
            seconds: How long, from now.
            since: Only events after this moment, by ``time.monotonic``.

        Returns:
            When it came.
        """
        deadline = time.monotonic() + seconds
        position = 0
        with self._changed:
            while True:
                for moment, event in self._events[position:]:
                    position += 1
                    if moment >= since and wanted(event):
                        return moment
                if not self._changed.wait(max(deadline - time.monotonic(), 0.0)) and time.monotonic() >= deadline:
                    pytest.fail(f"did not happen within {seconds:g} s; the last events: {self._told()}")

    def sample(
        self, wanted: Callable[[Sample], object], seconds: float = 20.0, since: float | None = None
    ) -> Sample:
        """Wait for a sample; those from before the call do not count."""
        found: list[Sample] = []

        def right(event: Event) -> bool:
            if event.sample is None or not wanted(event.sample):
                return False
            found.append(event.sample)
            return True

        self.until(right, seconds, time.monotonic() if since is None else since)
        return found[0]

    def forget(self) -> None:
        """Drop all that was said so far."""
        with self._changed:
            self._events.clear()

    def _read(self) -> None:
        while not self._over:
            event = self._fleet.events(0.5)
            if event is not None:
                with self._changed:
                    self._events.append((time.monotonic(), event))
                    self._changed.notify_all()

    def _told(self) -> str:
        lines = []
        for _, event in self._events[-12:]:
            if event.link is not None:
                lines.append(f"{event.link.phase.value}: {event.link.words}")
            elif event.sample is not None:
                states = [(server.name, server.state, server.reason) for server in event.sample.servers]
                gpus = [(gpu.index, gpu.state) for gpu in event.sample.gpus]
                lines.append(f"sample {event.sample.seq} {states} {gpus}")
        return "\n  ".join(["", *lines])


def server(sample: Sample, name: str = "triton") -> ServerSample | None:
    """The server of that name in a sample."""
    return next((one for one in sample.servers if one.name == name), None)


def model(sample: Sample, name: str, on: str = "triton") -> ModelSample | None:
    """The model of that name in a sample."""
    found = server(sample, on)
    return next((one for one in found.models if one.name == name), None) if found else None
