"""What was typed or opened during this session: in memory alone, never written, never shown."""

from __future__ import annotations

import threading
from pathlib import Path

from console.remote.authentication.keys import PrivateKey
from console.remote.target import Target

_Address = tuple[str, str, int]


class Memory:
    """Opened keys, passwords that were right, and which key a droplet took. For all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[str, tuple[int, PrivateKey]] = {}
        self._passwords: dict[_Address, str] = {}
        self._accepted: dict[_Address, bytes] = {}

    def key(self, path: str) -> PrivateKey | None:
        """The opened key of that file, unless the file changed since."""
        with self._lock:
            known = self._keys.get(path)
        return known[1] if known is not None and known[0] == _changed_at(path) else None

    def keep_key(self, path: str, key: PrivateKey) -> None:
        """Keep an opened key."""
        with self._lock:
            self._keys[path] = (_changed_at(path), key)

    def password(self, target: Target) -> str | None:
        """The password that was right for this login before."""
        with self._lock:
            return self._passwords.get(_address(target))

    def keep_password(self, target: Target, password: str | None) -> None:
        """Keep a password that was right; None forgets it."""
        with self._lock:
            if password is None:
                self._passwords.pop(_address(target), None)
            else:
                self._passwords[_address(target)] = password

    def accepted(self, target: Target) -> bytes | None:
        """The public key that this login took last."""
        with self._lock:
            return self._accepted.get(_address(target))

    def keep_accepted(self, target: Target, blob: bytes) -> None:
        """Keep which key was taken: it is offered first next time, which saves failed tries."""
        with self._lock:
            self._accepted[_address(target)] = blob

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._keys.clear()
            self._passwords.clear()
            self._accepted.clear()


def _address(target: Target) -> _Address:
    return (target.user, target.host, target.port)


def _changed_at(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0
