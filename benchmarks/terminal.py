"""A program in a terminal of its own: what it writes, how much, and when."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

ENDS_S = 5.0


class Terminal:
    """Runs a program in a pseudo-terminal and reads what it writes as fast as it comes.

    Args:
        argv: The program.
        environment: Its environment; TERM, COLORTERM and the locale are set besides.
        width: Cells.
        height: Lines.
    """

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], *, width: int = 120, height: int = 40
    ) -> None:
        self.began = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            more = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
            os.execvpe(argv[0], list(argv), {**environment, **more})
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self._came = threading.Condition()
        self._pieces: list[tuple[float, bytes]] = []
        self.written = 0
        """Bytes so far."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def press(self, keys: str) -> float:
        """Type; the moment it was done."""
        now = time.perf_counter()
        os.write(self._fd, keys.encode())
        return now

    def wait_for(self, wanted: bytes | re.Pattern[bytes], timeout: float = 60.0) -> float:
        """When what is wanted had come, of what was not forgotten.

        Raises:
            TimeoutError: It did not.
        """
        pattern = re.compile(re.escape(wanted)) if isinstance(wanted, bytes) else wanted
        end = time.perf_counter() + timeout
        with self._came:
            while True:
                seen = b""
                for moment, piece in self._pieces:
                    seen += piece
                    if pattern.search(seen):
                        return moment
                left = end - time.perf_counter()
                if left <= 0:
                    raise TimeoutError(
                        f"{pattern.pattern!r} did not come in {timeout:g} s; the last: {seen[-400:]!r}"
                    )
                self._came.wait(left)

    def forget(self) -> None:
        """Let go of what came until now; only the count of bytes stays."""
        with self._came:
            self._pieces.clear()

    def close(self) -> None:
        """End the program."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        end = time.monotonic() + ENDS_S
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                break
            time.sleep(0.02)
        os.close(self._fd)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._fd, 1 << 16)
            except OSError:
                return
            if not piece:
                return
            now = time.perf_counter()
            with self._came:
                self.written += len(piece)
                self._pieces.append((now, piece))
                self._came.notify_all()
