"""The console as a process in a terminal of its own, for what only a process shows: signals, and what it leaves."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from types import TracebackType

_SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;?<>=$]*[a-zA-Z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>78])")
LEFT_ON = re.compile(rb"\x1b\[\?(\d+)([hl])")
_RESTING = {7: True, 25: True, 1000: False, 1002: False, 1003: False, 1004: False, 1006: False, 1015: False,
            1049: False, 2004: False, 2048: False}  # fmt: skip
"""A terminal's modes as a shell has them, by number."""


class Console:
    """Runs ``droplet-console`` in a pseudo-terminal, as its controlling one."""

    def __init__(self, folder: Path, *words: str, settings: str, size: tuple[int, int] = (100, 30)) -> None:
        file = folder / "config.yaml"
        file.write_text(settings)
        environment = {
            **os.environ,
            "DROPLET_CONSOLE_CONFIG": str(file),
            "DROPLET_CONSOLE_STATE": str(folder / "state"),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
        }
        self.output = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(sys.executable, [sys.executable, "-m", "console", *words], environment)
        self.resize(*size)
        self.attributes = termios.tcgetattr(self.fd)

    def resize(self, width: int, height: int) -> None:
        """Another size, and the signal that goes with it."""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self.fd, keys.encode())

    def read(self, seconds: float) -> bytes:
        """What comes in that time."""
        came = b""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and select.select([self.fd], [], [], left)[0]:
            try:
                piece = os.read(self.fd, 1 << 16)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                break
            if not piece:
                break
            came += piece
        self.output += came
        return came

    def until(self, words: str, seconds: float = 30.0) -> None:
        """Wait for words on the screen."""
        seen = b""
        end = time.monotonic() + seconds
        while words.encode() not in _SEQUENCE.sub(b"", seen):
            if time.monotonic() > end:
                raise TimeoutError(f"{words!r} was not shown: {_SEQUENCE.sub(b'', seen)[-2000:]!r}")
            seen += self.read(0.1)

    def status(self, seconds: float = 10.0) -> int:
        """The exit status, or minus the signal that killed it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.read(0.2)
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise TimeoutError(f"it still runs after {seconds:g} s")

    def modes_left(self) -> dict[int, bool]:
        """Modes of the terminal that are not as a shell has them."""
        now = dict(_RESTING)
        for number, sign in LEFT_ON.findall(self.output):
            now[int(number)] = sign == b"h"
        return {number: on for number, on in now.items() if on != _RESTING.get(number, False)}

    def close(self) -> None:
        """End what still runs."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        with contextlib.suppress(OSError):
            os.close(self.fd)

    def __enter__(self) -> Console:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
