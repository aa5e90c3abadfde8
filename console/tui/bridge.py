"""Between the threads that watch droplets and the app's loop.

The watch opens in a thread of its own, so that loading the SSH library does not hold up the first paint. What it
says lies in its bounded queue until the app's timer takes it: nothing here calls into the app from another thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from console.services.link import Event

if TYPE_CHECKING:
    from console.remote.transport import Dialled

AT_ONCE = 1000
"""Events taken in one go, at most: the loop must get back to the keys."""


class Watching(Protocol):
    """Droplets that are being watched, as ``console.services.watching.Watch`` does it."""

    def events(self, timeout: float) -> Event | None:
        """The next event, or None where none came within ``timeout`` seconds."""

    def retry(self, droplet: str) -> None:
        """Try to reach it now."""

    def dial(self, droplet: str, host: str, port: int, *, timeout: float) -> Dialled:
        """Connect to a port as the droplet sees it."""

    def close(self) -> None:
        """End every line."""


class Bridge:
    """Opens a watch, hands over its events, closes it.

    Args:
        open_watch: Begins to watch; called in a thread of its own.
    """

    def __init__(self, open_watch: Callable[[], Watching]) -> None:
        self._open_watch = open_watch
        self._watch: Watching | None = None
        self._lock = threading.Lock()
        self._closed = False
        self.failure: Exception | None = None
        """Why the watch could not be opened."""

    def start(self) -> None:
        """Begin; call it once."""
        threading.Thread(target=self._open, name="open watch", daemon=True).start()

    def drain(self) -> list[Event]:
        """The events that wait now, in order; never blocks."""
        watch = self._watch
        if watch is None:
            return []
        found: list[Event] = []
        while len(found) < AT_ONCE:
            event = watch.events(0)
            if event is None:
                break
            found.append(event)
        return found

    def retry(self, droplet: str) -> None:
        """Try to reach a droplet now; nothing where nothing is watched yet."""
        if self._watch is not None:
            self._watch.retry(droplet)

    def dial(self, droplet: str, host: str, port: int, timeout: float) -> Dialled:
        """Connect to a port as the droplet sees it; from any thread.

        Raises:
            RemoteError: It cannot be done, or nothing is watched yet.
        """
        watch = self._watch
        if watch is None:
            from console.remote.errors import FailureKind, RemoteError

            raise RemoteError(FailureKind.LOST, f"{droplet} is not connected just now")
        return watch.dial(droplet, host, port, timeout=timeout)

    def close(self) -> None:
        """End the watch, however far it got."""
        with self._lock:
            self._closed = True
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _open(self) -> None:
        try:
            watch = self._open_watch()
        except Exception as error:  # shown to the person: a thread has nobody else to tell
            self.failure = error
            return
        with self._lock:
            closed = self._closed
            if not closed:
                self._watch = watch
        if closed:
            watch.close()
