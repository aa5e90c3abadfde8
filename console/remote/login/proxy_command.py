"""ssh_config's ProxyCommand: a command whose input and output are the line."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading

from console.domain.telemetry.text import printable
from console.remote.errors import FailureKind, RemoteError
from console.remote.login import failures
from console.remote.target import Target

_KEPT_STDERR = 2048


class ProxyCommand:
    """The running command, as a stream (``paramiko_api.Stream``).

    It is started as ssh does it: ``$SHELL -c "exec COMMAND"``, in a session of its own, so that ctrl-c in the
    terminal does not cut the line.
    """

    def __init__(self, target: Target) -> None:
        command = target.proxy_command or ""
        if target.options.get("proxyusefdpass") == "yes":
            raise RemoteError(
                FailureKind.SETTINGS,
                f"{target.name}: ProxyUseFdpass is not supported.",
                hint="Give a ProxyCommand that forwards its own input and output.",
            )
        self._target = target
        self._socket, theirs = socket.socketpair()
        self._stderr = b""
        shell = os.environ.get("SHELL") or "/bin/sh"
        try:
            self._process = subprocess.Popen(
                [shell, "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            self._socket.close()
            raise RemoteError(
                FailureKind.SETTINGS,
                f"{target.name}: ProxyCommand cannot be run by {shell}: {error.strerror or error}.",
                hint="Check $SHELL.",
            ) from error
        finally:
            theirs.close()
        self._watcher = threading.Thread(target=self._watch, name=f"proxy {target.name}", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        """Keep the end of what it says, and take note of its end."""
        pipe = self._process.stderr
        while pipe is not None and (chunk := os.read(pipe.fileno(), 4096)):
            self._stderr = (self._stderr + chunk)[-_KEPT_STDERR:]
        if pipe is not None:
            pipe.close()
        self._process.wait()

    def send(self, data: bytes) -> int:
        """See ``Stream``."""
        return self._socket.send(data)

    def recv(self, size: int) -> bytes:
        """See ``Stream``."""
        return self._socket.recv(size)

    def settimeout(self, seconds: float | None) -> None:
        """See ``Stream``."""
        self._socket.settimeout(seconds)

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    @property
    def _closed(self) -> bool:
        return self._socket.fileno() < 0  # paramiko asks as it would ask a socket

    def close(self) -> None:
        """Hang up, and end the command with its children."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGTERM)

    def failure(self) -> RemoteError | None:
        """Why the line ended, where the command itself is the reason."""
        self._watcher.join(1.0)
        status = self._process.poll()
        if status is None or status == 0:
            return None
        said = printable(" ".join(self._stderr.decode("utf-8", "replace").split()), 300)
        ended = f"ended with status {status}" if status > 0 else f"was ended by signal {-status}"
        return RemoteError(
            FailureKind.SETTINGS if status in (126, 127) else FailureKind.JUMP_HOST_FAILED,
            f"{failures.who(self._target)}: its ProxyCommand {ended}{': ' + said if said else ''}.",
            hint=f"Try it by hand: {self._target.proxy_command}",
        )
