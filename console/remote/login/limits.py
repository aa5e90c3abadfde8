"""How many logins at once, and how often to one address.

UFW's ``limit`` rejects the sixth connection in 30 s and renews its ban with each try; sshd drops unauthenticated
connections beyond MaxStartups (10 by default).
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from console.remote.errors import FailureKind, RemoteError
from console.remote.login.login_log import LoginLog

FLEET_LOGINS = 10
LOGINS_PER_WINDOW = 4
WINDOW = 30.0
SILENT_AFTER = 3.0
"""Seconds in which a droplet that is up shows its host key, also over a slow line."""


class Slot:
    """A place among the logins in progress. Until ``heard`` it belongs to somebody who may never answer."""

    def __init__(self, slots: FleetSlots) -> None:
        self._slots = slots

    def heard(self) -> None:
        """The other side answered; where the place went to another meanwhile, wait for a new one."""
        self._slots.confirm(self)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let another login go ahead meanwhile (a person is being asked)."""
        self._slots.leave(self)
        try:
            yield
        finally:
            self._slots.enter(self, answers=True)


class FleetSlots:
    """At most ``count`` logins in progress; the others wait for their turn.

    A droplet that is off takes its login's whole time-out to show it. So that ten of those do not keep all others
    waiting, a place counts as free once its holder has not been answered for ``patience`` seconds.
    """

    def __init__(
        self,
        count: int = FLEET_LOGINS,
        patience: float = SILENT_AFTER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._count = count
        self._patience = patience
        self._clock = clock
        self._changed = threading.Condition()
        self._until: dict[Slot, float] = {}
        """When each place counts as free."""

    @contextmanager
    def slot(self) -> Iterator[Slot]:
        """Hold a place. How long that takes is bounded by the deadlines of the logins ahead."""
        slot = Slot(self)
        self.enter(slot, answers=False)
        try:
            yield slot
        finally:
            self.leave(slot)

    def enter(self, slot: Slot, *, answers: bool) -> None:
        """Wait for a place."""
        with self._changed:
            self._take(slot, answers=answers)

    def confirm(self, slot: Slot) -> None:
        """Keep the place for as long as the login takes."""
        with self._changed:
            if self._until.pop(slot, 0.0) > self._clock():
                self._until[slot] = math.inf
            else:
                self._take(slot, answers=True)

    def leave(self, slot: Slot) -> None:
        """Give the place back."""
        with self._changed:
            self._until.pop(slot, None)
            self._changed.notify()

    def _take(self, slot: Slot, *, answers: bool) -> None:
        while True:
            now = self._clock()
            taken = [until for until in self._until.values() if until > now]
            if len(taken) < self._count:
                break
            soonest = min(taken)
            self._changed.wait(None if soonest == math.inf else soonest - now)
        self._until[slot] = math.inf if answers else now + self._patience


class Attempt:
    """A login that was let through; it counts from the moment the other side has noticed it."""

    def __init__(self, made: Callable[[], None]) -> None:
        self._made = made
        self.counted = False

    def noticed(self) -> None:
        """TCP was established or refused."""
        if not self.counted:
            self.counted = True
            self._made()


class LoginRate:
    """A sliding window of logins for each address.

    Args:
        count: Logins in a window.
        window: Its seconds.
        clock: Seconds.
        log: What other consoles of this machine did. It holds up those who come again by themselves; a first login,
            which a person wants now, is only noted there.
    """

    def __init__(
        self,
        count: int = LOGINS_PER_WINDOW,
        window: float = WINDOW,
        clock: Callable[[], float] = time.monotonic,
        log: LoginLog | None = None,
    ) -> None:
        self._count = count
        self._window = window
        self._clock = clock
        self._lock = threading.Lock()
        self._made: dict[Hashable, deque[float]] = {}
        self._pending: dict[Hashable, int] = {}
        self._log = log
        self._known: set[Hashable] = set()

    def wait(self, address: Hashable) -> float:
        """Seconds until another login to ``address`` is allowed; 0 if it is now."""
        with self._lock:
            return self._wait(address)

    def _wait(self, address: Hashable) -> float:
        own, now = self._made.get(address, deque()), self._clock()
        while own and now - own[0] >= self._window:
            own.popleft()
        if not own:
            self._made.pop(address, None)
        made = sorted([*own, *self._others(address)])
        pending = self._pending.get(address, 0)
        if len(made) + pending < self._count:
            return 0.0
        # Others may have made more than the window allows: all that are too many must have left it.
        last = len(made) + pending - self._count
        return made[min(last, len(made) - 1)] + self._window - now if made else 1.0

    def _others(self, address: Hashable) -> list[float]:
        return self._log.others(address) if self._log is not None and address in self._known else []

    @contextmanager
    def attempt(self, address: Hashable, name: str) -> Iterator[Attempt]:
        """Hold one of the window's places; given back at the end unless the attempt was noticed.

        Raises:
            RemoteError: LIMITED by ourselves, with ``retry_after``.
        """
        with self._lock:
            seconds = self._wait(address)
            if seconds > 0:
                raise RemoteError(
                    FailureKind.LIMITED,
                    f"{name}: {self._count} logins in {self._window:.0f} s is what a droplet's own limits allow.",
                    hint=f"The next one is due in {seconds:.0f} s.",
                    retry_after=seconds,
                )
            self._pending[address] = self._pending.get(address, 0) + 1
        attempt = Attempt(lambda: self._settle(address, noticed=True))
        try:
            yield attempt
        finally:
            if not attempt.counted:
                self._settle(address, noticed=False)

    def _settle(self, address: Hashable, *, noticed: bool) -> None:
        with self._lock:
            self._pending[address] -= 1
            if not self._pending[address]:
                del self._pending[address]
            if noticed:
                now = self._clock()
                self._known.add(address)
                self._made.setdefault(address, deque()).append(now)
                if self._log is not None:
                    self._log.add(address, now)
