"""The one typed door to paramiko, which has no types.

Nothing here imports paramiko until a connection is really made: the import costs a quarter of a second. The
protocols list what the product uses and no more; ``paramiko_client`` implements them on paramiko's
own classes and says where it departs from them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Protocol


class Stream(Protocol):
    """What an SSH connection runs over: a socket, or a channel of another connection."""

    def send(self, data: bytes, /) -> int:
        """Send some of ``data``; how much is returned."""

    def recv(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; empty at the end."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Let ``send`` and ``recv`` raise ``TimeoutError`` after so long."""

    def close(self) -> None:
        """Close both ways."""


class Channel(Protocol):
    """One channel. Never touched before ``Transport.open_channel`` returned it."""

    closed: bool
    """True once either side closed it, or the connection went."""
    eof_received: bool
    """The other side will send no more; what is buffered can still be read."""
    exit_status: int
    """The command's exit status, or -1 while (or where) there is none."""
    exit_signal: str | None
    """The signal's name without SIG, where one ended the command."""
    out_window_size: int
    """Bytes that ``send`` takes without waiting."""

    def start(self, command: str) -> None:
        """Ask for ``command`` to be run, without waiting for the answer: input may follow at once."""

    def started(self, timeout: float) -> bool:
        """Whether the request was accepted; waits for the answer.

        Raises:
            TimeoutError: No answer in time.
        """

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back after data, an end of output, an exit status, room in the send window, or a close.

        From the connection's thread, perhaps with the channel's lock held: the callback must not block, nor call
        into the channel.
        """

    def recv_ready(self) -> bool:
        """Whether standard output has bytes to read."""

    def recv_stderr_ready(self) -> bool:
        """Whether standard error has bytes to read."""

    def recv(self, size: int, /) -> bytes:
        """Standard output, up to ``size`` bytes; empty at its end.

        Raises:
            TimeoutError: Nothing came within what ``settimeout`` says.
        """

    def recv_stderr(self, size: int, /) -> bytes:
        """Standard error, likewise."""

    def send(self, data: bytes, /) -> int:
        """Send some of ``data`` to standard input; 0 once the channel is at its end.

        Raises:
            TimeoutError: The send window stayed full for what ``settimeout`` says.
            OSError: The channel is closed.
        """

    def settimeout(self, seconds: float | None, /) -> None:
        """How long ``recv``, ``recv_stderr`` and ``send`` wait."""

    def shutdown_write(self) -> None:
        """Send the end of standard input."""

    def close(self) -> None:
        """Close the channel. Calling it again does nothing."""


class Transport(Protocol):
    """One SSH connection with its own thread."""

    remote_version: str
    disconnected: tuple[int, str] | None
    """The reason code and text with which the server said goodbye, if it did."""

    def is_active(self) -> bool:
        """Whether the connection lives, as far as this side knows."""

    def is_authenticated(self) -> bool:
        """Whether it lives and the login succeeded."""

    def open_channel(self, kind: str = "session", *, timeout: float, to: tuple[str, int] | None = None) -> Channel:
        """Open a channel: "session", or "direct-tcpip" with the address ``to``.

        Raises:
            ChannelRefused: The server said no, and why.
            TimeoutError: No answer in time; a late one is closed by itself.
            EOFError: The connection is gone.
        """

    def silent_for(self) -> float:
        """Seconds since the server was last heard."""

    def ping(self, timeout: float) -> float:
        """Ask the server for any answer at all.

        Returns:
            The round trip in seconds.

        Raises:
            TimeoutError: No answer in time.
            EOFError: The connection is gone.
        """

    def close(self) -> None:
        """End the connection and all its channels, without waiting for the other side."""


class Handshake(Transport, Protocol):
    """A connection on its way to being authenticated."""

    host_key_blob: bytes
    """The server's host key or host certificate as it was proved, after ``negotiate``."""
    session_id: bytes
    """What a public key signature is bound to, after ``negotiate``."""
    server_extensions: dict[str, bytes]
    """RFC 8308 extensions the server sent, such as "server-sig-algs"."""

    def negotiate(self, timeout: float) -> None:
        """Exchange versions and keys within ``timeout`` seconds.

        Raises:
            NoBanner: The server did not say "SSH-2.0-..." in time.
            TimeoutError: It did, but the key exchange did not end in time.
            Exception: One of ``line_errors()``.
        """

    def set_keepalive(self, seconds: int) -> None:
        """Send something that often while nothing comes, for the sake of NAT tables in between."""

    def auth_send(self, payload: bytes) -> None:
        """Send a message of the authentication protocol (RFC 4252)."""

    def auth_receive(self, timeout: float) -> bytes:
        """The next such message of the server, with its type as the first byte.

        Raises:
            TimeoutError: None in time.
            EOFError: The connection is gone.
        """


class NoBanner(Exception):  # noqa: N818 - named for what is missing
    """The server did not introduce itself as an SSH server.

    Attributes:
        lines: What it said instead; OpenSSH says "Exceeded MaxStartups" or "Not allowed at this time" there.
        closed: True where it closed the connection, False where it kept silent.
    """

    def __init__(self, lines: tuple[str, ...], *, closed: bool) -> None:
        super().__init__("no SSH banner")
        self.lines = lines
        self.closed = closed


class ChannelRefused(Exception):  # noqa: N818 - a word of the protocol
    """The server refused to open a channel.

    Attributes:
        code: RFC 4254 5.1: 1 prohibited, 2 connect failed, 3 unknown type, 4 resource shortage.
        text: The server's words, not yet made safe to print.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"channel refused ({code}): {text!r}")
        self.code = code
        self.text = text


def line_errors() -> tuple[type[Exception], ...]:
    """What the calls of a connection raise when it breaks: name it after ``except``."""
    from paramiko.ssh_exception import SSHException

    return (SSHException, EOFError, OSError)


def warm_up() -> None:
    """Begin to load paramiko beside whatever comes first, such as ``ssh -G`` and connecting, which mostly wait.

    The thread is no daemon: a process that ends while compiled code is being loaded would be aborted by it.
    """
    if "paramiko" not in sys.modules:
        threading.Thread(target=_load, name="import paramiko", daemon=False).start()


def _load() -> None:
    import console.remote.ssh.paramiko_client  # noqa: F401


def make_transport(stream: Stream, *, host_key_algorithms: Sequence[str]) -> Handshake:
    """Wrap ``stream`` into a connection that ``negotiate`` starts.

    Args:
        stream: Connected; the transport owns it from here on.
        host_key_algorithms: What to accept as the server's host key, in order of preference.
    """
    from console.remote.ssh.paramiko_client import ClientTransport

    transport: Handshake = ClientTransport(stream, tuple(host_key_algorithms))
    return transport
