"""Watching droplets over the lines that their settings describe.

This module loads what SSH needs; nothing that runs without a connection imports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from console.remote.address.resolve import resolve
from console.remote.connect import connect
from console.remote.errors import FailureKind, RemoteError
from console.remote.login.login import LoginContext
from console.remote.prompts import NoPrompter, Prompter
from console.remote.scripts.running import ScriptStream, open_script
from console.remote.ssh.paramiko_api import warm_up
from console.remote.sudo import Privilege
from console.remote.target import Target
from console.remote.transport import Dialled, Transport
from console.services.fleet import Fleet
from console.services.link import Event
from console.settings.schema import Droplet, Sudo
from console.store.paths import known_hosts_file

INTERVAL_S = 1.0
CONNECT_S = 30.0
"""For all of a login, without the time a person takes to answer."""
HELLO_S = 15.0
"""For the script's first word."""


class Watch(AbstractContextManager["Watch"]):
    """A fleet together with what its logins share."""

    def __init__(self, fleet: Fleet, context: LoginContext, openers: Mapping[str, _Opener]) -> None:
        self._fleet = fleet
        self._context = context
        self._openers = openers

    def events(self, timeout: float) -> Event | None:
        """The next event of any droplet, or None when none came within ``timeout`` seconds."""
        return self._fleet.events(timeout)

    def retry(self, droplet: str) -> None:
        """Try a droplet again now that a person did what was needed."""
        self._fleet.retry(droplet)

    def dial(self, droplet: str, host: str, port: int, *, timeout: float) -> Dialled:
        """Connect to a port as a droplet sees it, over the connection that watches it.

        Raises:
            RemoteError: LOST while there is no such connection, otherwise as ``Transport.dial``.
        """
        transport = self._openers[droplet].transport
        if transport is None or transport.closed:
            raise RemoteError(FailureKind.LOST, f"{droplet} is not connected just now")
        return transport.dial(host, port, timeout=timeout)

    def close(self) -> None:
        """End every stream and login, also those that only begin, and forget what was typed."""
        self._context.ongoing.end_all()
        self._fleet.close()
        self._context.close()

    def __enter__(self) -> Watch:
        self._fleet.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def watch(droplets: Sequence[Droplet], *, prompter: Prompter, known_hosts: Path | None = None) -> Watch:
    """Watch droplets; begin by entering the result.

    Args:
        droplets: Each with a name of its own.
        prompter: Asked where a person must decide or type.
        known_hosts: Where accepted host keys are kept; None for the usual file.
    """
    if any(droplet.target != "local" for droplet in droplets):
        warm_up()  # the SSH library loads while ssh_config is read and TCP connects
    context = LoginContext(known_hosts or _known_hosts(droplets))
    openers = {droplet.name: _Opener(droplet, prompter, context) for droplet in droplets}
    intervals = {droplet.name: droplet.interval or INTERVAL_S for droplet in droplets}
    return Watch(Fleet(openers, intervals), context, openers)


def _known_hosts(droplets: Sequence[Droplet]) -> Path:
    """The usual file; for practice droplets alone one in their own folder, so that nothing is left behind."""
    practices = [droplet.practice for droplet in droplets if droplet.practice is not None]
    if practices and len(practices) == len(droplets):
        return Path(practices[0].ssh_config).with_name("accepted_hosts")
    return known_hosts_file()


class TelemetryLine:
    """A telemetry stream with the connection that is its own."""

    def __init__(self, transport: Transport, stream: ScriptStream) -> None:
        self._transport = transport
        self._stream = stream

    def read(self, timeout: float) -> dict[str, Any] | None:
        """See ``console.services.monitor.Line``."""
        return self._stream.read(timeout)

    def probe(self, timeout: float) -> float:
        """See ``console.services.monitor.Line``."""
        return self._transport.probe(timeout)

    def close(self) -> None:
        """See ``console.services.monitor.Line``."""
        self._stream.close()
        self._transport.close()


class _Opener:
    """Opens a droplet's line; remembers between two times what was found out and typed."""

    def __init__(self, droplet: Droplet, prompter: Prompter, context: LoginContext) -> None:
        self._droplet = droplet
        self._prompter = prompter
        self._context = context
        self.transport: Transport | None = None
        """The connection as last made; it may be closed by now."""
        self._privilege: Privilege | None = None
        self._refused = False

    def __call__(self) -> TelemetryLine:
        droplet = self._droplet
        practice = droplet.practice
        target = resolve(
            droplet.target,
            name=droplet.name,
            identities=droplet.identity,
            jump=droplet.jump,
            config=None if practice is None else practice.ssh_config,
        )
        transport = connect(target, prompter=self._prompter, context=self._context, timeout=CONNECT_S)
        try:
            with self._context.ongoing.ended_by(transport.close):
                line = TelemetryLine(transport, self._open(transport, target))
        except BaseException:
            transport.close()
            raise
        self.transport = transport
        return line

    def _open(self, transport: Transport, target: Target) -> ScriptStream:
        privilege = self._needed(target)
        try:
            return self._start(transport, privilege)
        except RemoteError as error:
            sudo = error.kind in (FailureKind.SUDO_PASSWORD_WANTED, FailureKind.SUDO_REFUSED)
            if not sudo or self._droplet.sudo is not Sudo.AUTO:
                raise
        # Most figures need no root; those that do say so.
        self._refused = True
        return self._start(transport, None)

    def _start(self, transport: Transport, privilege: Privilege | None) -> ScriptStream:
        request, practice = self._request(), self._droplet.practice
        if practice is None:
            return open_script(transport, "telemetry", request, privilege=privilege, timeout=HELLO_S)
        # Never with privilege: it is a folder of this machine's.
        root, path = practice.root, practice.path
        return open_script(transport, "telemetry", request, timeout=HELLO_S, root=root, path=path)

    def _needed(self, target: Target) -> Privilege | None:
        if target.local or self._droplet.sudo is Sudo.NEVER or self._refused:
            return None
        if self._privilege is None:
            asked = self._prompter if self._droplet.sudo is Sudo.ASK else NoPrompter()
            self._privilege = Privilege(target.user, target.name, asked)
        return self._privilege

    def _request(self) -> dict[str, object]:
        servers = [
            {
                key: value
                for key in ("name", "http", "grpc", "metrics")
                if (value := getattr(server, key)) is not None
            }
            for server in self._droplet.servers
        ]
        return {"interval": self._droplet.interval or INTERVAL_S, "servers": servers or None}
