"""Jump hosts: one login of ours for each, shared by every droplet behind it.

A ``ssh -W`` process for each droplet would be a login at the bastion for each droplet, which trips its limits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from console.remote.errors import FailureKind, RemoteError
from console.remote.login import backoff, failures
from console.remote.login.deadline import Deadline
from console.remote.ssh.paramiko_api import Channel, ChannelRefused, Transport, line_errors
from console.remote.target import Target

_TRUSTED_SILENCE = 5.0
"""Seconds of silence after which a shared connection is asked whether it lives, before a droplet relies on it."""
_PING = 3.0


class Held(Protocol):
    """A login that is kept."""

    transport: Transport

    def close(self) -> None:
        """End it."""


@dataclass(slots=True)
class _Entry:
    """One jump host, reached in one way."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    login: Held | None = None
    failure: RemoteError | None = None
    failed_at: float = 0.0
    spent: float = 0.0
    failures: int = 0


class JumpPool:
    """The jump hosts' logins of this process. For all threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[tuple[Target, ...], _Entry] = {}
        self._closed = False

    def channel(
        self, target: Target, via: tuple[Target, ...], deadline: Deadline, log_in: Callable[[], Held]
    ) -> Channel:
        """A connection to ``target`` from the last of ``via``.

        Args:
            target: Whose host and port the jump host connects to.
            via: The hosts in between, in order.
            deadline: For all of it; stands still while another thread logs in to the jump host.
            log_in: Logs in to the last of ``via``; called where no login of it lives.

        Raises:
            RemoteError: JUMP_HOST_FAILED with the reason as its cause, or how the target refused.
        """
        for last in (False, True):
            transport = self._transport(target, via, deadline, log_in)
            try:
                return transport.open_channel(
                    "direct-tcpip", timeout=deadline.at_most(target.connect_timeout), to=(target.host, target.port)
                )
            except ChannelRefused as error:
                raise failures.jump_refused(target, via[-1], error) from error
            except TimeoutError as error:
                if self._lives(transport):
                    raise failures.timed_out(target, f"port {target.port}, as seen from {via[-1].name},") from error
                transport.close()
            except line_errors():
                transport.close()
            if last or deadline.passed:
                break
        cause = RemoteError(FailureKind.LOST, f"the connection to {via[-1].name} broke.")
        raise failures.jump_failed(target, via[-1], cause) from cause

    def _transport(
        self, target: Target, via: tuple[Target, ...], deadline: Deadline, log_in: Callable[[], Held]
    ) -> Transport:
        with self._lock:
            entry = self._entries.setdefault(via, _Entry())
        asked_at = self._clock()
        with deadline.paused():
            entry.lock.acquire()
        try:
            if self._ended():
                raise RemoteError(FailureKind.LOST, f"{target.name}: the session is over.")
            if entry.login is not None:
                transport = entry.login.transport
                if transport.is_active() and (transport.silent_for() < _TRUSTED_SILENCE or self._lives(transport)):
                    return transport
                entry.login.close()
                entry.login = None
            self._spare(target, via[-1], entry, asked_at)
            began = self._clock()
            try:
                entry.login = log_in()
            except RemoteError as error:
                entry.failure, entry.failed_at = error, self._clock()
                entry.spent = entry.failed_at - began
                entry.failures += 1
                raise failures.jump_failed(target, via[-1], error) from error
            entry.failure, entry.failures = None, 0
            if self._ended():
                entry.login.close()  # it came after ``close`` had ended all others
            return entry.login.transport
        finally:
            entry.lock.release()

    def _spare(self, target: Target, jump: Target, entry: _Entry, asked_at: float) -> None:
        """Do not knock again for each of the droplets behind: they share the last failure for a moment."""
        if entry.failure is None:
            return
        wait = backoff.delay(entry.failures - 1, watched=True, spent=entry.spent) or 0.0
        left = entry.failed_at + max(wait, entry.failure.retry_after or 0.0) - self._clock()
        if entry.failed_at >= asked_at or (left > 0 and not entry.failure.needs_a_person):
            error = failures.jump_failed(target, jump, entry.failure)
            error.retry_after = max(left, 0.0) if not entry.failure.needs_a_person else None
            raise error from entry.failure

    def _ended(self) -> bool:
        with self._lock:
            return self._closed

    def _lives(self, transport: Transport) -> bool:
        try:
            transport.ping(_PING)
        except line_errors():  # TimeoutError among them
            return False
        return True

    def close(self) -> None:
        """End all of them, the innermost first; nothing is logged in to afterwards."""
        with self._lock:
            self._closed = True
            entries = sorted(self._entries.items(), key=lambda item: -len(item[0]))
        for _via, entry in entries:
            if entry.login is not None:
                entry.login.close()
