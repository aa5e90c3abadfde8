"""From a host name to a connected socket."""

from __future__ import annotations

import errno
import ipaddress
import os
import selectors
import socket
import threading
import time
from collections import deque

from console.remote.errors import FailureKind, RemoteError
from console.remote.login import failures
from console.remote.login.deadline import Deadline
from console.remote.target import Target

STAGGER = 1.0
"""Seconds before the next address is tried beside the first. Longer than browsers wait: a second connection that is
established and dropped again is one that OpenSSH 9.8 punishes."""

_LOOK_UP = 0.2
"""Seconds at most until an end of the deadline from outside is noticed."""

_FAMILIES = {"any": socket.AF_UNSPEC, "inet": socket.AF_INET, "inet6": socket.AF_INET6}

_Address = tuple[socket.AddressFamily, tuple[str | int | bytes, ...]]


def connect(target: Target, deadline: Deadline) -> socket.socket:
    """Connect to ``target.host``, addresses in the order of the system's preference.

    Raises:
        RemoteError: NAME_NOT_RESOLVED, REFUSED, TIMED_OUT, UNREACHABLE or SETTINGS.
    """
    addresses = _resolve(target, deadline)
    connected = _Attempts(target, addresses).run(deadline)
    connected.setblocking(True)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # paramiko writes small packets in a row
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)
    return connected


def _resolve(target: Target, deadline: Deadline) -> list[_Address]:
    """The addresses of a name. The system's resolver cannot be interrupted, so it runs aside."""
    found: list[_Address] = []
    failed: list[OSError] = []

    def look_up() -> None:
        try:
            family = _FAMILIES.get(target.address_family, socket.AF_UNSPEC)
            items = socket.getaddrinfo(target.host, target.port, family, socket.SOCK_STREAM)
            found.extend((item[0], tuple(item[4])) for item in items)
        except (OSError, UnicodeError) as error:
            failed.append(error if isinstance(error, OSError) else OSError(str(error)))

    if _is_address(target.host):
        look_up()
    else:
        thread = threading.Thread(target=look_up, name=f"resolve {target.host}", daemon=True)
        thread.start()
        while thread.is_alive() and not deadline.passed:
            thread.join(deadline.at_most(_LOOK_UP))
        if thread.is_alive():
            raise RemoteError(
                FailureKind.NAME_NOT_RESOLVED,
                f"{target.name}: the name {target.host} could not be looked up in {deadline.seconds:.0f} s.",
                hint="Check this machine's own connection and name server.",
            )
    if failed or not found:
        raise failures.name_not_resolved(target, failed[0] if failed else OSError("no address"))
    return list(dict.fromkeys(found))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.split("%")[0])
    except ValueError:
        return False
    return True


class _Attempts:
    """Connections being made, the first to stand wins (after RFC 8305)."""

    def __init__(self, target: Target, addresses: list[_Address]) -> None:
        self._target = target
        self._waiting = deque(addresses)
        self._running: dict[socket.socket, str] = {}
        self._errors: list[tuple[str, OSError]] = []

    def run(self, deadline: Deadline) -> socket.socket:
        end = time.monotonic() + self._target.connect_timeout
        with selectors.DefaultSelector() as selector:
            try:
                next_start = 0.0
                while self._waiting or self._running:
                    now = time.monotonic()
                    if now >= end or deadline.passed:
                        break
                    if self._waiting and (not self._running or now >= next_start):
                        self._start(selector)
                        next_start = now + STAGGER
                        continue
                    until = min(end, next_start) if self._waiting else end
                    seconds = deadline.at_most(min(_LOOK_UP, max(0.0, until - now)))
                    for key, _events in selector.select(seconds):
                        winner = self._finish(selector, key.fileobj)  # type: ignore[arg-type]
                        if winner is not None:
                            return winner
            finally:
                for loser in self._running:
                    loser.close()
        untried = [str(address[0]) for _family, address in self._waiting]
        self._errors += [(address, TimeoutError("timed out")) for address in [*self._running.values(), *untried]]
        raise failures.not_connected(self._target, self._errors)

    def _start(self, selector: selectors.BaseSelector) -> None:
        family, address = self._waiting.popleft()
        text = str(address[0])
        attempt = socket.socket(family, socket.SOCK_STREAM)
        try:
            attempt.setblocking(False)
            if self._target.bind_address is not None:
                attempt.bind((self._target.bind_address, 0))
            code = attempt.connect_ex(address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
        except OSError as error:
            attempt.close()
            self._errors.append((text, error))
            return
        self._running[attempt] = text
        selector.register(attempt, selectors.EVENT_WRITE)

    def _finish(self, selector: selectors.BaseSelector, attempt: socket.socket) -> socket.socket | None:
        selector.unregister(attempt)
        text = self._running.pop(attempt)
        code = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0:
            return attempt
        attempt.close()
        self._errors.append((text, OSError(code, os.strerror(code))))
        return None
