"""A small HTTP/1.1 client for the servers on this machine: many at once, one deadline for all of them.

On raw sockets, for what http.client and urllib bring along costs more memory than the whole collector. A chain is
a generator that yields a ``Request`` and is sent back its ``Answer``; ``drive`` runs chains side by side until each
has returned or the deadline came. Connections live for one chain at most: a held one delays Triton's restarts.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from time import monotonic

from remote_scripts.triton.http_reply import Reply, ReplyError

BODY_LIMIT = 8 << 20
"""Bytes of a body. 2,000 models' statistics are about 2 MiB, their metrics with summaries about 8."""
_CHUNK = 1 << 16
_IN_PROGRESS = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR}


@dataclass(frozen=True, slots=True)
class Request:
    """One request to one server.

    Attributes:
        address: numeric host and port.
        keep: more requests to the same address follow in this chain: leave the connection open for them.
        connect: makes the socket; for a server in another network namespace.
    """

    address: tuple[str, int]
    path: str
    method: str = "GET"
    body: bytes = b""
    keep: bool = False
    connect: Callable[[int], socket.socket] | None = None

    def encode(self) -> bytes:
        """The bytes to send."""
        host, port = self.address
        name = f"[{host}]" if ":" in host else host
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {name}:{port}"]
        lines.append(f"Connection: {'keep-alive' if self.keep else 'close'}")
        if self.body:
            lines.append(f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace") + self.body


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request.

    Attributes:
        status: HTTP's; 0 where no answer came.
        failure: "" or why there is no answer: "refused", "timeout", "unreachable", "broken".
        reason: the failure as a person reads it.
    """

    status: int
    body: bytes = b""
    failure: str = ""
    reason: str = ""


Chain = Generator[Request, Answer, None]
_TOO_LATE = Answer(0, failure="timeout", reason="no time was left to ask")


class _Exchange:
    """One chain and the connection that it is using."""

    def __init__(self, chain: Chain, selector: selectors.BaseSelector) -> None:
        self.chain: Chain | None = chain
        self._selector = selector
        self._socket: socket.socket | None = None
        self._peer: tuple[str, int] | None = None
        self._request: Request | None = None
        self._unsent = b""
        self._reply = Reply(BODY_LIMIT)
        self._reused = False
        self.expired = False
        """The deadline has passed: nothing more is begun."""

    def advance(self, answer: Answer | None) -> None:
        """Hand the chain its answer, and begin what it asks for next."""
        while self.chain is not None:
            try:
                self._request = self.chain.send(answer) if answer is not None else next(self.chain)
            except StopIteration:
                self.finish()
                return
            answer = self._begin()
            if answer is None:
                return

    def finish(self) -> None:
        self.chain = None
        self._drop()

    def fail(self, failure: str, reason: str) -> None:
        self._drop()
        self.advance(Answer(0, failure=failure, reason=reason))

    def ready(self, events: int) -> None:
        """The socket can be written or read."""
        try:
            if events & selectors.EVENT_WRITE:
                self._write()
            else:
                self._read()
        except ReplyError as error:
            self.fail("broken", str(error))
        except OSError as error:
            if self._reused and not self._reply.begun and self._request is not None:
                self._again()
            else:
                self.fail(*_explain(error))

    def _begin(self) -> Answer | None:
        """Start the request; an answer only where it failed at once."""
        request = self._request
        assert request is not None  # noqa: S101 - advance has just set it
        if self.expired:
            return _TOO_LATE
        self._unsent = request.encode()
        self._reply = Reply(BODY_LIMIT)
        self._reused = self._socket is not None and self._peer == request.address
        if self._reused and self._socket is not None:
            self._selector.modify(self._socket, selectors.EVENT_WRITE, self)
            return None
        self._drop()
        try:
            family = socket.AF_INET6 if ":" in request.address[0] else socket.AF_INET
            opened = request.connect(family) if request.connect else socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            return Answer(0, failure="unreachable", reason=f"no socket: {error.strerror or error}")
        opened.setblocking(False)
        self._socket, self._peer = opened, request.address
        code = opened.connect_ex(request.address)
        if code and code not in _IN_PROGRESS:
            self._drop()
            failure, reason = _explain(OSError(code, ""))
            return Answer(0, failure=failure, reason=reason)
        self._selector.register(opened, selectors.EVENT_WRITE, self)
        return None

    def _again(self) -> None:
        """The server closed a connection between two requests, as it may: ask over a fresh one."""
        self._drop()
        answer = self._begin()
        if answer is not None:
            self.advance(answer)

    def _write(self) -> None:
        opened = self._socket
        assert opened is not None  # noqa: S101 - the selector knows it
        code = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, "")
        self._unsent = self._unsent[opened.send(self._unsent) :]
        if not self._unsent:
            self._selector.modify(opened, selectors.EVENT_READ, self)

    def _read(self) -> None:
        opened = self._socket
        assert opened is not None  # noqa: S101 - the selector knows it
        data = opened.recv(_CHUNK)
        if not data and self._reused and not self._reply.begun:
            raise OSError(errno.ECONNRESET, "")
        if not self._reply.feed(data):
            return
        request, reply = self._request, self._reply
        if request is None or not request.keep or not reply.keep:
            self._drop()
        self.advance(Answer(reply.status, reply.body()))

    def _drop(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(KeyError, ValueError):  # it failed before it was registered
                self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None


def drive(chains: Iterable[Chain], deadline: float) -> None:
    """Run chains side by side until all have returned.

    Args:
        chains: each is run to its end: what is unanswered at the deadline, and all that it asks for after, fails
            with "timeout". Exceptions of a chain come through.
        deadline: by ``time.monotonic``.
    """
    with selectors.DefaultSelector() as selector:
        exchanges = [_Exchange(chain, selector) for chain in chains]
        try:
            for exchange in exchanges:
                exchange.advance(None)
            while any(exchange.chain is not None for exchange in exchanges):
                left = deadline - monotonic()
                if left <= 0:
                    break
                for key, events in selector.select(left):
                    key.data.ready(events)
            for exchange in exchanges:
                if exchange.chain is not None:
                    exchange.expired = True
                    exchange.fail("timeout", "no answer in time")
        finally:
            for exchange in exchanges:
                exchange.finish()


def _explain(error: OSError) -> tuple[str, str]:
    if isinstance(error, ConnectionRefusedError) or error.errno == errno.ECONNREFUSED:
        return "refused", "connection refused"
    if error.errno in (errno.ECONNRESET, errno.EPIPE):
        return "broken", "the connection was closed before the answer was complete"
    return "unreachable", (error.strerror or errno.errorcode.get(error.errno or 0, str(error))).lower()
