"""A droplet over one SSH login: every command is a channel of it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from console.remote import shell
from console.remote.errors import FailureKind, RemoteError
from console.remote.login.login import Login
from console.remote.process import ProcessOver
from console.remote.refusals import printable
from console.remote.ssh import paramiko_api
from console.remote.ssh.channels import ChannelPipes
from console.remote.ssh.slots import Slots
from console.remote.transport import Completed, Dialled

_PROHIBITED, _NO_SUCH_KIND = 1, 3
"""Of a refused channel; every other code may mean too many sessions: sshd says "open failed" (2) at MaxSessions."""
_RETRY_REFUSED = 0.25
_BROKEN = paramiko_api.line_errors()


class SshTransport:
    """Implements ``console.remote.transport.Transport`` over an authenticated connection.

    Args:
        login: Owned from here on.
    """

    def __init__(self, login: Login) -> None:
        self._login = login
        self._connection = login.transport
        name = login.target.name
        self._name = name
        self._slots = Slots(name)
        self._why: str | None = None

    @property
    def name(self) -> str:
        """See ``Transport.name``."""
        return self._name

    @property
    def closed(self) -> bool:
        """See ``Transport.closed``."""
        return self._lost() is not None

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout: float, limit: int = 1 << 20) -> Completed:
        """See ``Transport.run``."""
        deadline = time.monotonic() + timeout
        with self._start(shell.line(command, guard=True, stdin=bool(stdin)), deadline, guard=True) as process:
            try:
                return process.finish(stdin, deadline - time.monotonic(), limit)
            except TimeoutError:
                raise RemoteError(
                    FailureKind.COMMAND_TIMED_OUT,
                    f"{self._name}: {printable(command[0], 80)} was not done within {timeout:g} s and was ended",
                ) from None

    def open(self, command: Sequence[str], *, timeout: float, guard: bool = True) -> ProcessOver:
        """See ``Transport.open``."""
        return self._start(shell.line(command, guard=guard), time.monotonic() + timeout, guard=guard)

    def dial(self, host: str, port: int, *, timeout: float) -> Dialled:
        """See ``Transport.dial``: a channel of the login's own connection."""
        where = f"{self._name}: port {port} of {printable(host, 80)}"
        try:
            channel = self._connection.open_channel("direct-tcpip", timeout=timeout, to=(host, port))
        except paramiko_api.ChannelRefused as error:
            hint = None
            if error.code == _PROHIBITED:
                hint = "sshd's AllowTcpForwarding and PermitOpen, or a `restrict` in authorized_keys, forbid it"
            raise RemoteError(
                FailureKind.REFUSED, f"{where} cannot be reached: {printable(error.text)}", hint=hint
            ) from None
        except TimeoutError as error:
            raise RemoteError(FailureKind.TIMED_OUT, f"{where} did not answer within {timeout:g} s") from error
        except _BROKEN as error:
            raise self._loss(error) from error
        channel.settimeout(None)
        return channel

    def probe(self, timeout: float) -> float:
        """See ``Transport.probe``."""
        try:
            return self._connection.ping(timeout)
        except _BROKEN as error:
            why = self._lost() or f"the connection is lost: no answer for {timeout:g} s"
            self._end(why)
            raise RemoteError(FailureKind.LOST, f"{self._name}: {why}") from error

    def close(self) -> None:
        """See ``Transport.close``."""
        self._end("the connection was closed on this side")

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._slots.close()
        self._login.close()

    def _lost(self) -> str | None:
        if self._why is None and not self._connection.is_active():
            said = self._connection.disconnected
            self._why = (
                f"the connection is lost; the server said: {printable(said[1])}"
                if said
                else ("the connection is lost")
            )
            self._slots.close()
        return self._why

    def _start(self, text: str, deadline: float, *, guard: bool) -> ProcessOver:
        self._slots.take(deadline)
        try:
            channel = self._open_channel(deadline)
        except BaseException:
            self._slots.give()
            raise
        pipes = ChannelPipes(channel, self._lost, self._slots.give)
        try:
            channel.start(shell.login_command(text))
        except _BROKEN as error:
            pipes.close()
            raise self._loss(error) from error
        return ProcessOver(pipes, self._name, guard=guard)

    def _open_channel(self, deadline: float) -> paramiko_api.Channel:
        """Open a session, waiting where the server has too many: one it still ends counts as well."""
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                return self._connection.open_channel(timeout=left)
            except paramiko_api.ChannelRefused as error:
                if error.code == _NO_SUCH_KIND or left < _RETRY_REFUSED:
                    raise RemoteError(
                        FailureKind.SHELL_REFUSED,
                        f"{self._name} refused to open a session: {printable(error.text)}",
                        hint="sshd's MaxSessions allows too few sessions per connection; 10 is its default",
                    ) from None
                time.sleep(_RETRY_REFUSED)
            except TimeoutError as error:
                raise RemoteError(
                    FailureKind.COMMAND_TIMED_OUT, f"{self._name}: no channel could be opened in time"
                ) from error
            except _BROKEN as error:
                raise self._loss(error) from error

    def _loss(self, error: Exception) -> RemoteError:
        return RemoteError(FailureKind.LOST, f"{self._name}: {self._lost() or printable(str(error))}")
