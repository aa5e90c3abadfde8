"""Logins in progress, and how to end them all from outside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Ongoing:
    """What has begun and is not done. For all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: dict[object, Callable[[], None]] = {}
        self._over = False

    @contextmanager
    def ended_by(self, end: Callable[[], None]) -> Iterator[None]:
        """While inside, ``end_all`` calls ``end``; at once where it was called before.

        Args:
            end: Makes whatever blocks inside fail soon. May be called from another thread.
        """
        key = object()
        with self._lock:
            over = self._over
            self._ends[key] = end
        try:
            if over:
                end()
            yield
        finally:
            with self._lock:
                del self._ends[key]

    def end_all(self) -> None:
        """End what is going on, and what will begin."""
        with self._lock:
            self._over = True
            ends = list(self._ends.values())
        for end in ends:
            end()
