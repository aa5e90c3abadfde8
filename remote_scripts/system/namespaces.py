"""Sockets in another network namespace, so that a server in a container is asked where it listens."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

_CLONE_NEWNET = 0x40000000


def socket_in(namespace: str) -> Callable[[int], socket.socket]:
    """A maker of TCP sockets in a network namespace.

    Args:
        namespace: the path of its file, /proc/PID/ns/net.

    Returns:
        From an address family to a socket. It needs root, and raises OSError where the namespace is gone or
        cannot be entered. A socket stays in the namespace that it was made in; the thread is back in its own.
    """

    def make(family: int) -> socket.socket:
        there = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            try:
                _enter(there)
                try:
                    return socket.socket(family, socket.SOCK_STREAM)
                finally:
                    _enter(here)
            finally:
                os.close(here)
        finally:
            os.close(there)

    return make


def _enter(namespace: int) -> None:
    # os.setns came with Python 3.12. ctypes is loaded only where a container has to be entered.
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
