"""What every way of reaching a droplet can do: run a command, hold a process, tell whether the line lives.

``SshTransport`` and ``LocalTransport`` both implement ``Transport`` and pass the same suite (tests/contract). All
calls block, have a deadline in seconds, and may be made from several threads. Commands are argument lists: a
transport quotes them itself where the way needs a shell, and nothing that came from a droplet is ever part of a
command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Protocol


class Source(Enum):
    """Which of a process's two outputs a chunk came from."""

    OUT = "stdout"
    ERR = "stderr"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes as they came."""

    source: Source
    data: bytes


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended.

    Attributes:
        exit_status: 0 to 255, or None where a signal ended it.
        signal: The signal's name without SIG ("KILL"), or None.
        stdout: At most the limit asked for.
        stderr: Likewise.
        truncated: True where either output was longer; the rest was read and dropped.
    """

    exit_status: int | None
    stdout: bytes
    stderr: bytes
    signal: str | None = None
    truncated: bool = False


class Process(Protocol):
    """A running command. Its outputs wait in one bounded buffer; a slow reader holds the command up."""

    def read(self, timeout: float) -> Chunk | None:
        """The next bytes of either output.

        Returns:
            The chunk, or None when both outputs have ended.

        Raises:
            TimeoutError: Nothing came within ``timeout`` seconds. The process runs on.
            RemoteError: LOST: the connection went. SHELL_REFUSED, STILL_BOOTING: the command never ran.
        """

    def write(self, data: bytes, timeout: float) -> None:
        """Send all of ``data`` to standard input.

        A guarded command that closes its input and runs on is not noticed: what it does not take is dropped.

        Raises:
            TimeoutError: The other side did not take it in time; how much it took is not known, and nothing more
                can be written.
            BrokenPipeError: The process ended, or its input was closed.
            RemoteError: LOST.
        """

    def close_stdin(self) -> None:
        """Send the end of standard input; it waits a little where the other side takes nothing just now.

        Calling it again does nothing.
        """

    def wait(self, timeout: float) -> Completed:
        """The exit status, once the process ended; outputs that were not read are dropped and not in it.

        Raises:
            TimeoutError: It still runs.
            RemoteError: LOST.
        """

    def close(self) -> None:
        """End the process if it runs, and free the channel. Returns at once; calling it again does nothing.

        A guarded one gets SIGTERM with its whole group, and SIGKILL two seconds later; of one without guard only
        the input ends.
        """

    def __enter__(self) -> Process: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Dialled(Protocol):
    """A TCP connection that the droplet made for us. Close it when done."""

    def send(self, data: bytes, /) -> int:
        """Send some of ``data``, waiting where the other side is slow; how much is returned, 0 at the end."""

    def recv(self, size: int, /) -> bytes:
        """Up to ``size`` bytes, waiting for the first; empty at the end."""

    def shutdown_write(self) -> None:
        """Say that nothing more will be sent."""

    def close(self) -> None:
        """Close both ways; calling it again does nothing."""


class Transport(Protocol):
    """A way to a droplet, connected."""

    @property
    def name(self) -> str:
        """The droplet, as people call it: for messages."""

    @property
    def closed(self) -> bool:
        """True once closed or lost."""

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout: float, limit: int = 1 << 20) -> Completed:
        """Run a guarded command to its end. When the time is up it is ended there as well.

        What it leaves behind in its process group ends with it; what shall live on needs a session or a unit of its
        own.

        Args:
            command: The argument list.
            stdin: Given to it, then its input is closed.
            timeout: Seconds for all of it.
            limit: Bytes to keep of each output.

        Raises:
            RemoteError: COMMAND_TIMED_OUT, LOST, SHELL_REFUSED or STILL_BOOTING.
        """

    def open(self, command: Sequence[str], *, timeout: float, guard: bool = True) -> Process:
        """Start a command and return as soon as it was asked for; whether it was accepted shows in its output.

        Args:
            command: The argument list.
            timeout: Seconds until it must have been asked for (waiting for a free channel included).
            guard: Wrap it so that it ends with its channel. False for what ends by itself at the end of its input.

        Raises:
            RemoteError: As ``run``; SHELL_REFUSED and STILL_BOOTING come from ``read`` and ``wait``.
        """

    def dial(self, host: str, port: int, *, timeout: float) -> Dialled:
        """Connect to a port as the droplet sees it.

        Args:
            host: By name or address, looked up on the droplet: "127.0.0.1" is its own loopback.
            port: TCP.
            timeout: Seconds.

        Raises:
            RemoteError: REFUSED: nothing listens there, or the droplet's sshd forwards nothing. TIMED_OUT, LOST.
        """

    def probe(self, timeout: float) -> float:
        """Whether the other side still answers.

        Returns:
            The round trip in seconds.

        Raises:
            RemoteError: LOST: no answer in time. The transport is closed then.
        """

    def close(self) -> None:
        """End every process and the connection. Returns within a second; calling it again does nothing."""
