"""The tools that a remote script runs: bounded in time and output, and ended with the script."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_living: set[int] = set()
_lock = threading.Lock()
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Finished:
    """A tool that ended.

    Attributes:
        status: Its exit status; minus the signal's number where one ended it.
        stdout: At most the limit asked for.
        stderr: Likewise.
        timed_out: True where it was killed because its time was up.
        truncated: True where either output was longer than the limit.
    """

    status: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    truncated: bool = False

    @property
    def ok(self) -> bool:
        """It ended by itself with status 0."""
        return self.status == 0 and not self.timed_out

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are no UTF-8 become U+FFFD."""
        return self.stdout.decode("utf-8", "replace")


def run(
    command: Sequence[str],
    timeout: float,
    data: bytes = b"",
    *,
    limit: int = 1 << 20,
    env: Mapping[str, str] | None,
) -> Finished:
    """Run ``command`` to its end or to ``timeout`` seconds; see ``Call.run``."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if data else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        start_new_session=True,
        bufsize=0,
    )
    with _lock:
        _living.add(process.pid)
    try:
        return _follow(process, time.monotonic() + timeout, data, limit)
    finally:
        _kill_group(process.pid, signal.SIGKILL)  # the group may outlive its leader
        process.wait()
        with _lock:
            _living.discard(process.pid)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def end_all(grace: float = 1.0) -> None:
    """End every tool that still runs with its group: SIGTERM, and SIGKILL after ``grace`` seconds."""
    with _lock:
        groups = list(_living)
    for group in groups:
        _kill_group(group, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and any(group in _living for group in groups):
        time.sleep(0.02)
    for group in groups:
        if group in _living:
            _kill_group(group, signal.SIGKILL)


def _follow(process: subprocess.Popen[bytes], deadline: float, data: bytes, limit: int) -> Finished:
    """Feed input and drain both outputs until they end, then take the exit status."""
    kept = {pipe.fileno(): bytearray() for pipe in (process.stdout, process.stderr) if pipe is not None}
    truncated = False
    rest = memoryview(data)
    timed_out = False
    with selectors.DefaultSelector() as selector:
        for fd in kept:
            selector.register(fd, selectors.EVENT_READ)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin.fileno(), selectors.EVENT_WRITE)
        while selector.get_map() and not timed_out:
            left = deadline - time.monotonic()
            timed_out = left <= 0
            for key, _ in selector.select(max(left, 0)):
                if key.fd in kept:
                    chunk = os.read(key.fd, _CHUNK)
                    if not chunk:
                        selector.unregister(key.fd)
                    room = limit - len(kept[key.fd])
                    truncated = truncated or len(chunk) > room
                    kept[key.fd] += chunk[: max(room, 0)]
                else:
                    rest = _feed(key.fd, rest)
                    if not rest and process.stdin is not None:
                        selector.unregister(key.fd)
                        process.stdin.close()
    if not timed_out:
        try:
            process.wait(max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            timed_out = True
    if timed_out:
        _kill_group(process.pid, signal.SIGKILL)
    out, err = (bytes(output) for output in kept.values())
    return Finished(process.wait(), out, err, timed_out, truncated)


def _feed(fd: int, rest: memoryview) -> memoryview:
    """Write what fits; nothing is left when the tool does not want the rest."""
    try:
        return rest[os.write(fd, rest[:_CHUNK]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]


def _kill_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
