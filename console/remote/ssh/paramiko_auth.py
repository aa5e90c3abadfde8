"""paramiko's place for authentication, taken by a mailbox. Imported only by ``paramiko_client``."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from paramiko import common


class AuthBridge:
    """Hands the server's authentication messages to the login's own thread.

    Args:
        succeeded: Called from the connection's thread when the server accepted the login.
    """

    def __init__(self, succeeded: Callable[[], None]) -> None:
        self._succeeded = succeeded
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._authenticated = False
        self.banner: bytes | None = None
        kinds = (
            common.MSG_SERVICE_ACCEPT,
            common.MSG_USERAUTH_FAILURE,
            common.MSG_USERAUTH_SUCCESS,
            common.MSG_USERAUTH_BANNER,
            common.MSG_USERAUTH_INFO_REQUEST,
        )
        self._handler_table = {kind: self._handler(kind) for kind in kinds}

    def _handler(self, kind: int) -> Callable[[Any], None]:
        def handle(message: Any) -> None:
            if kind == common.MSG_USERAUTH_SUCCESS:
                self._authenticated = True
                self._succeeded()
            self._messages.put(bytes([kind]) + message.asbytes())

        return handle

    def receive(self, timeout: float) -> bytes:
        """The next message, with its type as the first byte."""
        try:
            message = self._messages.get(timeout=max(timeout, 0.0))
        except queue.Empty:
            raise TimeoutError("no answer to the authentication request") from None
        if message is None:
            self.abort()  # whoever asks again is told again
            raise EOFError("the connection ended during authentication")
        return message

    def abort(self) -> None:
        """Tell the waiting thread that the connection is gone (called by paramiko)."""
        self._messages.put(None)

    def is_authenticated(self) -> bool:
        """Whether the server said so (called by paramiko)."""
        return self._authenticated
