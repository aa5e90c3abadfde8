"""paramiko's channel with the answers that paramiko drops. Imported only by ``paramiko_client``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from paramiko import common
from paramiko.channel import Channel
from paramiko.message import Message

from console.remote.ssh import ssh_wire
from console.remote.ssh.paramiko_api import ChannelRefused


class ClientChannel(Channel):  # type: ignore[misc]
    """Implements ``console.remote.ssh.paramiko_api.Channel``.

    paramiko ignores "exit-signal", waits for ever for the answer to "exec", and tells nobody when data came.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_signal: str | None = None
        self.answered = threading.Event()
        """Set once the server opened or refused the channel, or it is lost."""
        self.refused: ChannelRefused | None = None
        self.abandoned = False
        self._exec_answered = threading.Event()
        self._exec_accepted = False
        self._changed: Callable[[], None] = _nobody

    def start(self, command: str) -> None:
        """See ``paramiko_api.Channel.start``."""
        self.transport._send_user_message(
            Message(
                common.cMSG_CHANNEL_REQUEST
                + ssh_wire.uint32(self.remote_chanid)
                + ssh_wire.string("exec")
                + ssh_wire.boolean(True)
                + ssh_wire.string(command)
            )
        )

    def started(self, timeout: float) -> bool:
        """See ``paramiko_api.Channel.started``."""
        if not self._exec_answered.wait(timeout):
            raise TimeoutError("no answer to the request to run a command")
        return self._exec_accepted

    def on_change(self, callback: Callable[[], None]) -> None:
        """See ``paramiko_api.Channel.on_change``."""
        self._changed = callback

    def _request_success(self, m: Any) -> None:
        self._exec_accepted = True
        self._exec_answered.set()

    def _request_failed(self, m: Any) -> None:
        self._exec_answered.set()
        super()._request_failed(m)

    def _feed(self, m: Any) -> None:
        super()._feed(m)
        self._changed()

    def _feed_extended(self, m: Any) -> None:
        super()._feed_extended(m)
        self._changed()

    def _window_adjust(self, m: Any) -> None:
        super()._window_adjust(m)
        self._changed()

    def _handle_eof(self, m: Any) -> None:
        super()._handle_eof(m)
        self._changed()

    def _handle_request(self, m: Any) -> None:
        if m.get_text() == "exit-signal":
            m.get_boolean()
            self.exit_signal = m.get_text()
            self.status_event.set()
        else:
            m.rewind()
            m.get_int()  # the channel's number, which the transport had read
            super()._handle_request(m)
        self._changed()

    def _set_closed(self) -> None:
        super()._set_closed()
        self.answered.set()
        self._exec_answered.set()
        self._changed()


def _nobody() -> None:
    """Nobody wants to know."""
