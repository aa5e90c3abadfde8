"""One command that somebody runs on the practice droplet, as sshd would run it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from paramiko import Message
from paramiko.common import cMSG_CHANNEL_REQUEST

_CHUNK = 1 << 15
_GRACE_S = 3.0
"""Seconds that a command gets to end once its channel is closed: the remote scripts end by themselves."""


class Child:
    """A child process between a channel's streams.

    Args:
        channel: paramiko's; closed at the end.
        command: For ``sh -c``.
        environment: All of its variables.
        folder: Its working folder.
        ended: Told at the end.
    """

    def __init__(
        self,
        channel: Any,
        command: bytes,
        environment: Mapping[str, str],
        folder: Path,
        ended: Callable[[Child], None],
    ) -> None:
        self._channel = channel
        self._command = command
        self._environment = environment
        self._folder = folder
        self._ended = ended
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Run it to its end."""
        try:
            self._process = process = subprocess.Popen(
                [b"/bin/sh", b"-c", self._command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(self._environment),
                cwd=self._folder,
                start_new_session=True,
                bufsize=0,
            )
        except OSError:
            self._channel.close()
            self._ended(self)
            return
        threading.Thread(target=self._feed, args=(process,), daemon=True).start()
        outputs = [
            threading.Thread(target=self._drain, args=(pipe, send), daemon=True)
            for pipe, send in (
                (process.stdout, self._channel.sendall),
                (process.stderr, self._channel.sendall_stderr),
            )
        ]
        for thread in outputs:
            thread.start()
        for thread in outputs:
            thread.join()
        self._report(process.wait())
        self._channel.close()
        self._ended(self)

    def end(self) -> None:
        """Kill it and all that it started."""
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        """Input, until the channel has no more; then its end, and a while later the command's."""
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        with contextlib.suppress(OSError, EOFError):
            while data := self._channel.recv(_CHUNK):
                process.stdin.write(data)
        with contextlib.suppress(OSError):
            process.stdin.close()
        if self._channel.closed:
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                self.end()

    def _drain(self, pipe: BinaryIO, send: Callable[[bytes], None]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while data := os.read(pipe.fileno(), _CHUNK):
                send(data)
        pipe.close()

    def _report(self, code: int) -> None:
        """The exit status, or the signal (RFC 4254, 6.10)."""
        with contextlib.suppress(OSError, EOFError):
            if code >= 0:
                self._channel.send_exit_status(code)
                return
            message = Message()
            message.add_byte(cMSG_CHANNEL_REQUEST)
            message.add_int(self._channel.remote_chanid)
            message.add_string("exit-signal")
            message.add_boolean(False)
            message.add_string(signal.Signals(-code).name.removeprefix("SIG"))
            message.add_boolean(False)
            message.add_string("")
            message.add_string("")
            self._channel.transport._send_user_message(message)
