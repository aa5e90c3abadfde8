"""A forwarded port: bytes between an SSH channel and a port of loopback."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Any

_CHUNK = 1 << 15
_OPENS_WITHIN = 5.0


def forward(transport: Any, chanid: int, port: int) -> None:
    """Serve one forwarded connection until either side ends it.

    Args:
        transport: paramiko's, which is about to open the channel.
        chanid: The channel's number there.
        port: Of 127.0.0.1.
    """
    channel = _opened(transport, chanid)
    if channel is None:
        return
    try:
        upstream = socket.create_connection(("127.0.0.1", port), timeout=_OPENS_WITHIN)
    except OSError:
        channel.close()
        return
    upstream.settimeout(None)
    with upstream, contextlib.closing(channel):
        back = threading.Thread(target=_copy, args=(upstream.recv, channel.sendall, channel.shutdown_write))
        back.daemon = True
        back.start()
        _copy(channel.recv, upstream.sendall, lambda: upstream.shutdown(socket.SHUT_WR))
        back.join()


def _opened(transport: Any, chanid: int) -> Any:
    """The channel once paramiko has opened it: that is after the request for it was answered."""
    deadline = time.monotonic() + _OPENS_WITHIN
    while time.monotonic() < deadline:
        channel = transport._channels.get(chanid)
        if channel is not None and channel.remote_chanid is not None:
            return channel
        time.sleep(0.01)
    return None


def _copy(read: Any, write: Any, end: Any) -> None:
    with contextlib.suppress(OSError, EOFError):
        while data := read(_CHUNK):
            write(data)
    with contextlib.suppress(OSError, EOFError):
        end()
