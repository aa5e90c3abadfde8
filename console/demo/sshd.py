"""The practice droplet's SSH: paramiko's server side, on loopback, for one key.

It runs what it is asked to run as child processes with an environment of its own: one PATH, one home, nothing of
the person's. It forwards to the stand-in's ports and to no other.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paramiko

from console.demo.child import Child
from console.demo.forward import forward

_BANNER_TIMEOUT = 15.0
_NO_SHELL = (
    "This is the practice droplet of droplet-console: a folder on your own machine.\r\n"
    "It has no shell of its own, so that nothing outside its folder can change.\r\n"
)


class Sshd:
    """The listener and its connections.

    Args:
        host_key: The private host key's file.
        login_key: The private key whose owner may log in.
        user: The only login name.
        environment: Of the child processes.
        home: Their working folder.
    """

    def __init__(
        self, host_key: Path, login_key: Path, user: str, environment: Mapping[str, str], home: Path
    ) -> None:
        self.user = user
        self.home = home
        self.environment = dict(environment)
        self.allowed = paramiko.Ed25519Key(filename=str(login_key))
        self.forwarded: frozenset[int] = frozenset()
        """Ports of loopback that may be forwarded to."""
        self._host_key = paramiko.Ed25519Key(filename=str(host_key))
        self._connections: set[Any] = set()
        self._children: set[Child] = set()
        self._lock = threading.Lock()
        self._closed = False

    def serve(self, listener: socket.socket) -> None:
        """Take connections until the listener is closed."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_one, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """End every connection and every child."""
        with self._lock:
            self._closed = True
            connections, children = list(self._connections), list(self._children)
        for connection in connections:
            connection.close()
        for child in children:
            child.end()

    def start(self, channel: Any, command: bytes) -> None:
        """Run a command on a channel that was opened for it."""
        with self._lock:
            if self._closed:
                channel.close()
                return
            child = Child(channel, command, self.environment, self.home, self._forget)
            self._children.add(child)
        child.start()

    def refuse_shell(self, channel: Any) -> None:
        """Say why there is no shell, and end the session."""
        with contextlib.suppress(OSError):
            channel.sendall(_NO_SHELL.encode())
            channel.send_exit_status(0)
        channel.close()

    def _forget(self, child: Child) -> None:
        with self._lock:
            self._children.discard(child)

    def _serve_one(self, connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        transport.banner_timeout = _BANNER_TIMEOUT
        transport.add_server_key(self._host_key)
        with self._lock:
            if self._closed:
                transport.close()
                return
            self._connections.add(transport)
        try:
            transport.start_server(server=_Session(self))
            held: list[Any] = []
            while transport.is_active():
                # paramiko itself holds channels weakly: one that nobody holds is closed before its request comes.
                channel = transport.accept(1.0)
                held = [one for one in (*held, channel) if one is not None and not one.closed]
        except (paramiko.SSHException, OSError, EOFError):
            return
        finally:
            transport.close()
            with self._lock:
                self._connections.discard(transport)


class _Session(paramiko.ServerInterface):  # type: ignore[misc]  # paramiko has no types
    """What one connection may do."""

    def __init__(self, sshd: Sshd) -> None:
        self._sshd = sshd

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: Any) -> int:
        same = username == self._sshd.user and key.asbytes() == self._sshd.allowed.asbytes()
        return int(paramiko.AUTH_SUCCESSFUL if same else paramiko.AUTH_FAILED)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(
            paramiko.OPEN_SUCCEEDED if kind == "session" else paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        )

    def check_channel_exec_request(self, channel: Any, command: bytes) -> bool:
        threading.Thread(target=self._sshd.start, args=(channel, command), daemon=True).start()
        return True

    def check_channel_pty_request(self, channel: Any, *_: Any) -> bool:
        return True

    def check_channel_shell_request(self, channel: Any) -> bool:
        threading.Thread(target=self._sshd.refuse_shell, args=(channel,), daemon=True).start()
        return True

    def check_channel_direct_tcpip_request(self, chanid: int, origin: Any, destination: tuple[str, int]) -> int:
        host, port = destination
        if host not in ("127.0.0.1", "localhost") or port not in self._sshd.forwarded:
            return int(paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED)
        transport: Any = threading.current_thread()  # paramiko calls from the transport's own thread
        threading.Thread(target=forward, args=(transport, chanid, port), daemon=True).start()
        return int(paramiko.OPEN_SUCCEEDED)
