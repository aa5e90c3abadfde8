"""When this machine's consoles knocked where, kept in a file that all of them share.

Two consoles that each keep to four logins in 30 s are eight to a droplet: UFW's ``limit`` bans this machine's
address at the sixth, and renews the ban for as long as both go on.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE = 0.2
"""Seconds to wait for another console that has the file just now."""
_LARGEST = 1 << 20


class LoginLog:
    """The file. For all threads; where it cannot be used, it is as if there were no other consoles.

    Args:
        path: In a folder of the user's own.
        window: Seconds to keep.
        clock: Seconds since the boot, the same for all processes of a machine.
    """

    def __init__(self, path: Path, window: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._window = window
        self._clock = clock
        self._self = secrets.token_hex(4)

    def others(self, address: Hashable) -> list[float]:
        """When other consoles knocked at ``address`` within the window."""
        try:
            with self._held() as descriptor:
                entries = self._read(descriptor)
        except OSError:
            return []
        return [when for when, key, who in entries if key == _key(address) and who != self._self]

    def add(self, address: Hashable, when: float) -> None:
        """Note a login."""
        try:
            with self._held() as descriptor:
                entries = [*self._read(descriptor), (when, _key(address), self._self)]
                os.ftruncate(descriptor, 0)
                text = "".join(f"{when!r} {key} {who}\n" for when, key, who in entries)
                os.pwrite(descriptor, text.encode(), 0)
        except OSError:
            return

    @contextmanager
    def _held(self) -> Iterator[int]:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            end = time.monotonic() + _PATIENCE
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.01)
            yield descriptor
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> list[tuple[float, str, str]]:
        """What is within the window. A time that is still to come is from before the last boot."""
        now = self._clock()
        entries = []
        for line in os.pread(descriptor, _LARGEST, 0).decode("utf-8", "replace").splitlines():
            words = line.split(" ")
            try:
                when, key, who = float(words[0]), words[1], words[2]
            except (ValueError, IndexError):
                continue  # cut short by a full disk, say
            if 0 <= now - when < self._window:
                entries.append((when, key, who))
        return entries


def _key(address: Hashable) -> str:
    return hashlib.sha256(repr(address).encode()).hexdigest()[:16]
