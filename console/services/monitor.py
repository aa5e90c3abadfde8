"""One watched droplet: connect, follow its ticks, notice silence, and come back by itself.

A monitor is one daemon thread that blocks with deadlines. It tells everything through ``emit``: each sample, and
each change of the line. It never tries again by itself where that needs a person.
"""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from console.domain.telemetry.builder import SampleBuilder
from console.domain.telemetry.text import printable
from console.remote.errors import FailureKind, RemoteError
from console.remote.login import backoff
from console.services.link import Event, LinkState, Phase
from console.services.pace import Pace

QUIET_S = 1.0
"""A tick may be this late before the line is called stalled."""
LOST_S = 8.0
"""A line on which even a probe stays unanswered for this long is given up."""
PROBE_EVERY_S = 30.0
STEADY_S = 10.0
"""A stream that lived this long has come back: what fails at once each time is tried more and more seldom."""
HEAVY_S = 0.1
"""A line that costs more processor time is followed by a rest of that length: half a core a droplet at most."""
FLOODED_S = 30.0
"""A droplet that sends without measure is left alone for this long."""
_OLD = "its lines are no newer than those before"


class Line(Protocol):
    """A telemetry stream over an open connection."""

    def read(self, timeout: float) -> Mapping[str, object] | None:
        """The next line, or None when the stream ended.

        Raises:
            TimeoutError: Nothing came in time.
            RemoteError: The stream or the connection broke.
        """

    def probe(self, timeout: float) -> float:
        """Seconds for a round trip; RemoteError LOST where nothing comes back."""

    def close(self) -> None:
        """End the stream and the connection."""


class Monitor:
    """Follows one droplet until it is stopped.

    Args:
        droplet: Its name.
        open_line: Connects and starts the stream; blocks; raises RemoteError.
        emit: Called from the monitor's thread; must not block.
        interval: Seconds between ticks.
    """

    def __init__(
        self,
        droplet: str,
        *,
        open_line: Callable[[], Line],
        emit: Callable[[Event], None],
        interval: float,
    ) -> None:
        self.droplet = droplet
        self._open_line = open_line
        self._emit = emit
        self._interval = interval
        self._builder = SampleBuilder(droplet)
        self._failures = 0
        self._began = 0.0
        self._told = 0.0
        self.watched = True
        """Somebody looks at it: a lost line is tried again every 8 s, otherwise more and more seldom."""
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._line: Line | None = None
        self._lock = threading.Lock()
        self._rtt: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"monitor {droplet}", daemon=True)

    def start(self) -> None:
        """Begin; call it once."""
        self._thread.start()

    def retry(self) -> None:
        """Try again now, where the monitor waits: after a person did what was needed."""
        self._wake.set()

    def stop(self, timeout: float = 1.0) -> None:
        """End the stream and the connection, and wait up to ``timeout`` seconds for the thread."""
        self._stopping.set()
        self._wake.set()
        with self._lock:
            line = self._line
        if line is not None:
            line.close()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._began = time.monotonic()
            try:
                self._connect_and_follow()
            except RemoteError as error:
                self._wait_after(error)
            except Exception as error:
                # A mistake of ours must not leave this droplet without a word, or write into the screen.
                self._wait_after(_unexpected(self.droplet, error))
        self._say(Phase.CLOSED, "closed")

    def _connect_and_follow(self) -> None:
        self._say(Phase.CONNECTING, "connecting")
        line = self._open_line()
        with self._lock:
            self._line = line
        try:
            # Stopped while connecting: stop() found no line to close.
            if not self._stopping.is_set():
                self._follow(line)
        finally:
            with self._lock:
                self._line = None
            line.close()

    def _follow(self, line: Line) -> None:
        stream = f"{self.droplet}/{time.time_ns():x}"
        live = False
        probed = last = began = time.monotonic()
        pace = Pace(self._interval, last)
        heavy = 0.0
        while not self._stopping.is_set():
            if heavy > HEAVY_S:
                self._stopping.wait(heavy)
            heavy, worked = 0.0, time.thread_time()
            try:
                tick = line.read(self._interval + QUIET_S)
            except TimeoutError:
                live = False
                self._on_silence(line, time.monotonic() - last)
                continue
            if tick is None:
                raise RemoteError(FailureKind.SCRIPT_FAILED, f"{self.droplet}: the telemetry ended by itself")
            now = time.monotonic()
            if not pace.allows(now):
                raise self._flooded()
            sample = self._builder.feed(tick, arrived=time.time(), stream=stream)
            heavy = time.thread_time() - worked
            if sample is None:
                if now - last > self._interval + QUIET_S:
                    live = False
                    self._on_useless(now - last)
                continue
            last = now
            if now - began > STEADY_S:
                self._failures = 0
            self._emit(Event(self.droplet, sample=sample))
            if not live:
                live = True
                self._say(Phase.LIVE, "live")
            elif last - probed > PROBE_EVERY_S:
                probed = last
                self._rtt = line.probe(LOST_S)
                self._say(Phase.LIVE, "live")

    def _on_silence(self, line: Line, silent_s: float) -> None:
        """Say it, then find out whether the line is dead or only the script is late."""
        self._say(Phase.STALLED, f"no data for {silent_s:.0f} s")
        self._rtt = line.probe(LOST_S)
        if silent_s > 2 * LOST_S + self._interval:
            raise RemoteError(
                FailureKind.SCRIPT_FAILED,
                f"{self.droplet}: the connection answers, but no telemetry came for {silent_s:.0f} s",
            )

    def _on_useless(self, silent_s: float) -> None:
        """Lines come, and no figures can be made of them: that is no life, however often they come."""
        why = self._builder.problem or _OLD
        if silent_s > 2 * LOST_S + self._interval:
            raise RemoteError(
                FailureKind.SCRIPT_FAILED, f"{self.droplet}: no figures came for {silent_s:.0f} s: {why}"
            )
        if time.monotonic() - self._told > QUIET_S:
            self._say(Phase.STALLED, f"no figures for {silent_s:.0f} s: {why}")

    def _flooded(self) -> RemoteError:
        return RemoteError(
            FailureKind.SCRIPT_FAILED,
            f"{self.droplet}: telemetry comes far more often than every {self._interval:g} s as it should",
            hint="what answers there is not this program's script, or its clock runs wild",
            retry_after=FLOODED_S,
        )

    def _wait_after(self, error: RemoteError) -> None:
        jitter = random.random()  # noqa: S311 - no secret
        spent = time.monotonic() - self._began
        delay = backoff.delay(self._failures, watched=self.watched, error=error, random=jitter, spent=spent)
        self._failures += 1
        self._wake.clear()
        if self._stopping.is_set():
            return
        if delay is None:
            self._say(Phase.FAILED, str(error), error=error)
            self._wake.wait()
            return
        retry_at = time.time() + delay
        self._say(
            Phase.WAITING,
            f"{str(error).rstrip('.')}; trying again in {delay:.0f} s",
            error=error,
            retry_at=retry_at,
        )
        self._wake.wait(delay)

    def _say(
        self, phase: Phase, words: str, *, error: RemoteError | None = None, retry_at: float | None = None
    ) -> None:
        state = LinkState(phase, words, time.time(), error=error, retry_at=retry_at, rtt_s=self._rtt)
        self._told = time.monotonic()
        self._emit(Event(self.droplet, link=state))


def _unexpected(droplet: str, error: Exception) -> RemoteError:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
    return RemoteError(
        FailureKind.PROTOCOL,
        f"{droplet}: an unexpected failure on this side: {printable(what, 300)}",
        hint="this is a mistake in droplet-console; please report it with these words",
    )
