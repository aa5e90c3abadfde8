"""Logging in: from a target to an authenticated connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from console.remote.authentication.auth import authenticate
from console.remote.authentication.memory import Memory
from console.remote.authentication.userauth import UserAuth
from console.remote.errors import FailureKind, RemoteError
from console.remote.host_keys.check import HostKeys
from console.remote.login import failures, tcp
from console.remote.login.deadline import Deadline
from console.remote.login.exchange import Exchange
from console.remote.login.jump import JumpPool
from console.remote.login.limits import WINDOW, Attempt, FleetSlots, LoginRate, Slot
from console.remote.login.login_log import LoginLog
from console.remote.login.ongoing import Ongoing
from console.remote.login.proxy_command import ProxyCommand
from console.remote.prompts import Prompter
from console.remote.ssh.paramiko_api import (
    Handshake,
    NoBanner,
    Stream,
    Transport,
    line_errors,
    make_transport,
    warm_up,
)
from console.remote.target import Target

KEEPALIVE = 30
"""Seconds, unless ssh_config's ServerAliveInterval says otherwise."""


class LoginContext:
    """What all logins of this process share: limits, jump hosts, what was typed, accepted host keys.

    Args:
        app_known_hosts: Where accepted host keys are kept; what consoles tell each other lies beside it.
        clock: For the limits; seconds.
    """

    def __init__(self, app_known_hosts: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.host_keys = HostKeys(app_known_hosts)
        self.memory = Memory()
        self.rate = LoginRate(clock=clock, log=LoginLog(app_known_hosts.with_name("logins"), WINDOW, clock))
        self.slots = FleetSlots()
        self.jumps = JumpPool(clock)
        self.ongoing = Ongoing()
        self._question = threading.Lock()

    @contextmanager
    def asking(self, deadline: Deadline, slot: Slot) -> Iterator[None]:
        """Around a question to a person: one at a time, the deadline stands still, other logins go ahead."""
        with deadline.paused(), slot.lent(), self._question:
            yield

    def close(self) -> None:
        """End the jump hosts' logins and those in progress, and forget what was typed."""
        self.ongoing.end_all()
        self.jumps.close()
        self.memory.clear()


class Login:
    """An authenticated connection to a droplet.

    Attributes:
        transport: Authenticated; open channels on it.
        target: What was logged in to.
    """

    def __init__(self, transport: Transport, target: Target) -> None:
        self.transport = transport
        self.target = target

    def close(self) -> None:
        """End the connection. A jump host that others use stays."""
        self.transport.close()


def login(target: Target, *, prompter: Prompter, deadline: float, context: LoginContext) -> Login:
    """Log in to ``target``.

    Args:
        target: Where; not ``local``.
        prompter: Asked where a person must decide or type.
        deadline: Seconds for all of it, without the time that a person takes to answer, or that is spent waiting
            for a turn (10 logins at once, or another thread's login to the same jump host).
        context: Shared by all logins of this process.

    Raises:
        RemoteError: Of any kind up to SECOND_FACTOR_WANTED and LOST. Never tried again by itself.
    """
    warm_up()
    limit = Deadline(deadline)
    with context.ongoing.ended_by(limit.expire):
        return _log_in(target, target.jumps, prompter, limit, context)


def _log_in(
    target: Target, via: tuple[Target, ...], prompter: Prompter, deadline: Deadline, context: LoginContext
) -> Login:
    address = (tuple((hop.host, hop.port) for hop in via), target.host, target.port)
    with context.rate.attempt(address, failures.who(target)) as attempt:
        if via:
            # Before a slot is taken: the jump host's own login needs one.
            stream = _through(target, via, prompter, deadline, context, attempt)
            with _slot(context, deadline) as slot:
                return _over(stream, target, prompter, deadline, context, slot)
        with _slot(context, deadline) as slot:
            stream = (
                ProxyCommand(target) if target.proxy_command is not None else _direct(target, deadline, attempt)
            )
            attempt.noticed()
            return _over(stream, target, prompter, deadline, context, slot)


@contextmanager
def _slot(context: LoginContext, deadline: Deadline) -> Iterator[Slot]:
    with ExitStack() as stack:
        with deadline.paused():
            slot = stack.enter_context(context.slots.slot())
        yield slot


def _direct(target: Target, deadline: Deadline, attempt: Attempt) -> Stream:
    try:
        return tcp.connect(target, deadline)
    except RemoteError as error:
        if error.kind is FailureKind.REFUSED:
            attempt.noticed()
        raise


def _through(
    target: Target,
    via: tuple[Target, ...],
    prompter: Prompter,
    deadline: Deadline,
    context: LoginContext,
    attempt: Attempt,
) -> Stream:
    def log_in() -> Login:
        return _log_in(via[-1], via[:-1], prompter, deadline, context)

    try:
        channel = context.jumps.channel(target, via, deadline, log_in)
    except RemoteError as error:
        if error.kind is FailureKind.REFUSED:
            attempt.noticed()
        raise
    attempt.noticed()
    return channel


def _over(
    stream: Stream, target: Target, prompter: Prompter, deadline: Deadline, context: LoginContext, slot: Slot
) -> Login:
    """Log in over a connected stream; it is closed where that fails."""

    def asking() -> AbstractContextManager[None]:
        return context.asking(deadline, slot)

    transport = make_transport(stream, host_key_algorithms=context.host_keys.algorithms(target))
    try:
        with context.ongoing.ended_by(transport.close):
            _negotiate(transport, stream, target, deadline)
            with deadline.paused():
                slot.heard()
            context.host_keys.verify(target, transport.host_key_blob, prompter, asking)
            exchange = Exchange(
                transport, UserAuth(transport, target.user), target, prompter, deadline, context.memory, asking
            )
            authenticate(exchange)
        interval = target.options.get("serveraliveinterval", "0")
        transport.set_keepalive(int(interval) if interval.isdigit() and interval != "0" else KEEPALIVE)
    except BaseException:
        transport.close()
        raise
    return Login(transport, target)


def _negotiate(transport: Handshake, stream: Stream, target: Target, deadline: Deadline) -> None:
    expected: tuple[type[Exception], ...] = (NoBanner, *line_errors())
    try:
        transport.negotiate(deadline.at_most(target.connect_timeout))
    except expected as error:
        reason = stream.failure() if isinstance(stream, ProxyCommand) else None
        if reason is None:
            if isinstance(error, NoBanner):
                reason = failures.no_banner(target, error)
            elif not transport.remote_version:
                reason = failures.no_banner(target, NoBanner((), closed=True))
            else:
                reason = failures.no_key_exchange(target, transport, error)
        raise reason from error
