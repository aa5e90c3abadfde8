"""This very machine as a droplet: the same commands in the same wrapping, over pipes instead of a channel."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from console.remote import shell
from console.remote.errors import FailureKind, RemoteError
from console.remote.local_connection import LocalConnection, local_connection
from console.remote.process import Exit, ProcessOver
from console.remote.refusals import printable
from console.remote.ssh.slots import Slots
from console.remote.transport import Chunk, Completed, Source

_CHUNK = 1 << 16
_LOOK_AGAIN = 0.1
"""Seconds between two looks whether the command ended, where the kernel has no pidfd."""
_LAST_WORDS = 0.5
"""Seconds that closing waits for the commands it ended."""


class LocalPipes:
    """Implements ``console.remote.process.Pipes`` over the pipes of a child process.

    The kernel's pipe buffers are the bounded buffer. Nothing here waits but ``wait``.
    """

    def __init__(self, child: subprocess.Popen[bytes], lost: Callable[[], str | None]) -> None:
        if child.stdin is None or child.stdout is None or child.stderr is None:
            raise ValueError("the child needs three pipes")
        self._child = child
        self.gone = lost
        self._input: int | None = os.dup(child.stdin.fileno())
        self._outputs = {os.dup(child.stdout.fileno()): Source.OUT, os.dup(child.stderr.fileno()): Source.ERR}
        for pipe in (child.stdin, child.stdout, child.stderr):
            pipe.close()
        for fd in (self._input, *self._outputs):
            os.set_blocking(fd, False)
        self._woken, self._wake = os.pipe()
        self._exited = _pidfd(child.pid)
        self._lock = threading.RLock()
        self._closed = False
        self._changes = 0

    def moment(self) -> int:
        """See ``Pipes.moment``."""
        return self._changes

    def wait(self, moment: int, seconds: float, *, sending: bool) -> None:
        """See ``Pipes.wait``."""
        poll = select.poll()
        with self._lock:
            if self._closed or self._changes != moment:
                return
            for fd in self._outputs:
                poll.register(fd, select.POLLIN)
            if sending and self._input is not None:
                poll.register(self._input, select.POLLOUT)
            if self._exited is not None and self._child.returncode is None:
                poll.register(self._exited, select.POLLIN)
            poll.register(self._woken, select.POLLIN)
        if self._exited is None:
            seconds = min(seconds, _LOOK_AGAIN)
        poll.poll(min(seconds, 3600.0) * 1000)
        self.exit()

    def receive(self) -> Chunk | None:
        """See ``Pipes.receive``."""
        with self._lock:
            for fd, source in list(self._outputs.items()):
                try:
                    data = os.read(fd, _CHUNK)
                except BlockingIOError:
                    continue
                if data:
                    return Chunk(source, data)
                os.close(fd)
                del self._outputs[fd]
                self._changes += 1
        return None

    def outputs_ended(self) -> bool:
        """See ``Pipes.outputs_ended``."""
        return not self._outputs

    def send(self, data: memoryview) -> int:
        """See ``Pipes.send``."""
        with self._lock:
            if self._input is None:
                raise BrokenPipeError("the command's input is closed")
            try:
                return os.write(self._input, data[:_CHUNK])
            except BlockingIOError:
                return 0

    def end_input(self) -> None:
        """See ``Pipes.end_input``."""
        with self._lock:
            if self._input is not None:
                os.close(self._input)
                self._input = None

    def exit(self) -> Exit | None:
        """See ``Pipes.exit``."""
        with self._lock:
            running = self._child.returncode is None
            code = self._child.poll()
            if code is None:
                return None
            if running:
                self._changes += 1
                self.end_input()  # as sshd does: the watcher ends what is left of the group
        return Exit(code) if code >= 0 else Exit(None, _signal_name(-code))

    def close(self) -> None:
        """See ``Pipes.close``."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self.end_input()
            for fd in self._outputs:
                os.close(fd)
            self._outputs.clear()
            os.close(self._wake)  # whoever waits wakes
            self._child.poll()

    def __del__(self) -> None:
        # What another thread may still poll is closed only when nobody can.
        for fd in (self._woken, self._exited):
            if fd is not None:
                with contextlib.suppress(OSError):
                    os.close(fd)


class LocalTransport:
    """Implements ``console.remote.transport.Transport`` for the machine this runs on."""

    def __init__(self, name: str = "local") -> None:
        self._name = name
        self._slots = Slots(name)
        self._running: set[_LocalProcess] = set()
        self._ending: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._closed = False

    @property
    def name(self) -> str:
        """See ``Transport.name``."""
        return self._name

    @property
    def closed(self) -> bool:
        """See ``Transport.closed``."""
        return self._closed

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout: float, limit: int = 1 << 20) -> Completed:
        """See ``Transport.run``."""
        deadline = time.monotonic() + timeout
        with self._start(shell.line(command, guard=True, stdin=bool(stdin)), deadline, guard=True) as process:
            try:
                return process.finish(stdin, deadline - time.monotonic(), limit)
            except TimeoutError:
                raise RemoteError(
                    FailureKind.COMMAND_TIMED_OUT,
                    f"{self._name}: {printable(command[0], 80)} was not done within {timeout:g} s and was ended",
                ) from None

    def open(self, command: Sequence[str], *, timeout: float, guard: bool = True) -> ProcessOver:
        """See ``Transport.open``."""
        return self._start(shell.line(command, guard=guard), time.monotonic() + timeout, guard=guard)

    def dial(self, host: str, port: int, *, timeout: float) -> LocalConnection:
        """See ``Transport.dial``."""
        if self._closed:
            raise RemoteError(FailureKind.LOST, f"{self._name}: it was closed on this side")
        return local_connection(self._name, host, port, timeout)

    def probe(self, timeout: float) -> float:
        """See ``Transport.probe``."""
        if self._closed:
            raise RemoteError(FailureKind.LOST, f"{self._name}: it was closed on this side")
        return 0.0

    def close(self) -> None:
        """See ``Transport.close``."""
        self._closed = True
        self._slots.close()
        with self._lock:
            running = list(self._running)
        for process in running:
            process.close()
        deadline = time.monotonic() + _LAST_WORDS
        while self._reap() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _lost(self) -> str | None:
        return "it was closed on this side" if self._closed else None

    def _start(self, text: str, deadline: float, *, guard: bool) -> ProcessOver:
        self._slots.take(deadline)
        self._reap()
        try:
            child = subprocess.Popen(
                ["sh", "-c", 'l=$1;eval "$l"', "sh", text],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except BaseException:
            self._slots.give()
            raise
        process = _LocalProcess(LocalPipes(child, self._lost), self._name, guard, lambda p: self._ended(p, child))
        with self._lock:
            self._running.add(process)
        if self._closed:
            process.close()
        return process

    def _ended(self, process: _LocalProcess, child: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if process in self._running:
                self._running.remove(process)
                self._ending.append(child)
                self._slots.give()
        self._reap()

    def _reap(self) -> bool:
        """Take the exit status of what was closed; whether some of it still runs."""
        with self._lock:
            self._ending = [child for child in self._ending if child.poll() is None]
            return bool(self._ending)


class _LocalProcess(ProcessOver):
    """Tells its transport when it is closed."""

    def __init__(self, pipes: LocalPipes, host: str, guard: bool, ended: Callable[[_LocalProcess], None]) -> None:
        super().__init__(pipes, host, guard=guard)
        self._ended = ended

    def close(self) -> None:
        super().close()
        self._ended(self)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:  # a real-time signal
        return str(number)


def _pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the child ends; None where there is no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
