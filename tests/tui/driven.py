"""The real app in a thread of its own, so that a test can do slow things to a droplet and look at the screen."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

import pytest
from textual.pilot import Pilot

from console.domain.telemetry.sample import Sample
from console.remote.transport import Dialled
from console.services.link import Event
from console.tui.app import ConsoleApp
from console.tui.bridge import Watching
from console.tui.screens.overview import OverviewScreen

Found = TypeVar("Found")
Self = TypeVar("Self", bound="Driven")


class Tee:
    """A watch whose events are kept as they go by: what `watch` would print."""

    def __init__(self, watch: Watching) -> None:
        self._watch = watch
        self.samples: dict[tuple[str, int], Sample] = {}
        """By stream and number."""

    def events(self, timeout: float) -> Event | None:
        """See ``console.tui.bridge.Watching``."""
        event = self._watch.events(timeout)
        if event is not None and event.sample is not None:
            self.samples[event.sample.stream, event.sample.seq] = event.sample
        return event

    def retry(self, droplet: str) -> None:
        """See ``console.tui.bridge.Watching``."""
        self._watch.retry(droplet)

    def dial(self, droplet: str, host: str, port: int, *, timeout: float) -> Dialled:
        """See ``console.tui.bridge.Watching``."""
        return self._watch.dial(droplet, host, port, timeout=timeout)

    def close(self) -> None:
        """See ``console.tui.bridge.Watching``."""
        self._watch.close()


class Driven:
    """An app that runs from entering to leaving.

    Args:
        app: The app.
        size: Columns and lines of its terminal.
    """

    def __init__(self, app: ConsoleApp, size: tuple[int, int] = (120, 40)) -> None:
        self.app = app
        self._size = size
        self._pilot: Pilot[int] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._over: asyncio.Event | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self: Self) -> Self:
        self._thread.start()
        assert self._ready.wait(30), "the app did not start"
        if self._error is not None:
            raise self._error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._over is not None:
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(20)
        self.app.bridge.close()
        if self._error is not None and error is None:
            raise self._error

    @property
    def overview(self) -> OverviewScreen:
        """The screen in front."""
        screen = self.app.view_screen
        assert isinstance(screen, OverviewScreen)
        return screen

    def press(self, *keys: str) -> None:
        """Press keys, and wait until they were taken."""
        assert self._pilot is not None
        self.within(self._pilot.press(*keys))

    def look(self) -> list[str]:
        """The lines on the terminal, as text."""
        return self.ask(lambda: text(self.app))

    def ask(self, what: Callable[[], Found]) -> Found:
        """Call something in the app's loop."""

        async def call() -> Found:
            return what()

        return self.within(call())

    def within(self, work: Coroutine[Any, Any, Found], timeout: float = 20) -> Found:
        """Run a coroutine in the app's loop."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def until(self, wanted: Callable[[list[str]], object], seconds: float) -> float:
        """Wait until the terminal shows something; when it did, by ``time.monotonic``."""
        deadline = time.monotonic() + seconds
        while True:
            lines = self.look()
            if wanted(lines):
                return time.monotonic()
            if time.monotonic() > deadline:
                pytest.fail(f"not shown within {seconds:g} s:\n" + "\n".join(lines))
            time.sleep(0.05)

    def _run(self) -> None:
        try:
            asyncio.run(self._drive())
        except BaseException as error:  # raised again in the test's own thread
            self._error = error
        self._ready.set()

    async def _drive(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        async with self.app.run_test(size=self._size) as pilot:
            self._pilot = pilot
            self._ready.set()
            await self._over.wait()


def text(app: ConsoleApp) -> list[str]:
    """What stands on an app's terminal, line by line."""
    compositor = app.screen._compositor
    return ["".join(segment.text for segment in strips) for strips in _rows(compositor.render_strips())]


def _rows(strips: Any) -> list[list[Any]]:
    return [list(strip) for strip in strips]
