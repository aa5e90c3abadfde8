"""The process behind ``proxy.Proxy``: carries TCP connections over a line that is slow, stalled or cut.

A process of its own, so that a busy test neither delays the line nor pays for it. Run as
``python proxy_process.py LISTEN TARGET PORT DELAY``; prints ``{"port": N}``, then answers each line of JSON on
standard input, ``{"do": "stall"}``, with one line of figures. The end of its input ends it.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import socket
import struct
import sys
import time
from collections import deque
from typing import Any

LIMIT = 16 << 20
"""Bytes on the way in one direction of a connection before the sender has to wait: a large window."""

_RESET = struct.pack("ii", 1, 0)


class PreciseSelector(selectors.DefaultSelector):
    """epoll counts whole milliseconds and rounds up, which a delay would show; this sleeps out the rest."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As the base class, but never late by more than the system's own timers."""
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        end = time.monotonic() + timeout
        ready = super().select(int(timeout * 1000 - 0.2) / 1000)
        if not ready:
            time.sleep(max(0.0, end - time.monotonic()))
            ready = super().select(0)
        return ready


class Line:
    """What all connections share: the delay, whether anything moves, and the figures."""

    def __init__(self, target: tuple[str, int], delay: float) -> None:
        self.target = target
        self.delay = delay
        self.stalled = False
        self.waiting: list[tuple[Near, End]] = []
        self.ways: set[Way] = set()
        self.ends: set[End] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.figures = {"connections": 0, "up": 0, "down": 0}

    def stall(self) -> None:
        """Stop moving bytes. Connections stay, and new ones are taken and not carried on."""
        self.stalled = True
        for way in self.ways:
            way.pause()

    def resume(self) -> None:
        """Move again, what was on the way first."""
        self.stalled = False
        for near, far in self.waiting:
            near.call_out(far, 0.05)  # time to see who has given up meanwhile
        self.waiting.clear()
        for way in list(self.ways):
            way.deliver()

    def cut(self) -> None:
        """Reset every connection."""
        self.waiting.clear()
        for end in list(self.ends):
            end.reset()


class End(asyncio.Protocol):
    """One socket of a connection. What it receives goes ``out``; ``Way`` writes to ``transport``."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.transport: asyncio.Transport | None = None
        self.out: Way | None = None
        self.into: Way | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.line.ends.add(self)

    def data_received(self, data: bytes) -> None:
        """Bytes for the other side."""
        assert self.out is not None
        self.out.take(data)

    def eof_received(self) -> bool:
        """This side sends no more; it may still receive."""
        assert self.out is not None
        self.out.take(None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone: where that was no orderly end, the other side hears of it in time."""
        self.line.ends.discard(self)
        if self.into is not None and self.out is not None:
            self.line.ways.discard(self.into)
            if not (self.out.ended and self.into.ended):
                self.out.take(exc or ConnectionResetError())

    def pause_writing(self) -> None:
        """Whoever is at this socket does not read: keep the rest on the way."""
        if self.into is not None:
            self.into.blocked = True

    def resume_writing(self) -> None:
        """It reads again."""
        if self.into is not None:
            self.into.blocked = False
            self.into.deliver()

    def reset(self) -> None:
        """Break this socket so that its other side sees a reset."""
        if self.transport is not None:
            sock = self.transport.get_extra_info("socket")
            if sock.fileno() >= 0:  # it may have broken by itself in this very moment
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()


class Way:
    """One direction of a connection: what is on the way, and when it is due."""

    def __init__(self, line: Line, name: str, source: End, sink: End, first_due: float) -> None:
        self.line = line
        self.name = name
        self.source = source
        self.sink = sink
        self.first_due = first_due
        self.queue: deque[tuple[float, bytes | Exception | None]] = deque()
        self.size = 0
        self.timer: asyncio.TimerHandle | None = None
        self.blocked = False
        self.ended = False
        source.out = self
        sink.into = self
        line.ways.add(self)

    def take(self, item: bytes | Exception | None) -> None:
        """Bytes, the end, or a break, from the source."""
        now = asyncio.get_running_loop().time()
        self.queue.append((max(now + self.line.delay, self.first_due), item))
        if isinstance(item, bytes):
            self.size += len(item)
            if self.size > LIMIT:
                self.pause()
        self.deliver()

    def pause(self) -> None:
        """Read no more from the source."""
        if self.source.transport is not None and not self.source.transport.is_closing():
            self.source.transport.pause_reading()

    def deliver(self) -> None:
        """Hand over what is due, and wake up for what is next."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        loop = asyncio.get_running_loop()
        source, sink = self.source.transport, self.sink.transport
        if self.line.stalled:
            return
        if source is not None and not source.is_closing() and self.size <= LIMIT:
            source.resume_reading()
        if sink is None:
            return
        while self.queue and not self.blocked and self.queue[0][0] <= loop.time():
            self._hand_over(sink, self.queue.popleft()[1])
        if self.queue and not self.blocked:
            self.timer = loop.call_at(self.queue[0][0], self.deliver)

    def _hand_over(self, sink: asyncio.Transport, item: bytes | Exception | None) -> None:
        if isinstance(item, bytes):
            self.size -= len(item)
            if not sink.is_closing():
                sink.write(item)
                self.line.figures[self.name] += len(item)
        elif isinstance(item, Exception):
            self.sink.reset()
        elif not self.ended and not sink.is_closing():
            self.ended = True
            sink.write_eof()
            if self.sink.out is not None and self.sink.out.ended:
                sink.close()
                if self.source.transport is not None:
                    self.source.transport.close()


class Near(End):
    """The socket of whoever connected to the proxy."""

    waited = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Call the target as late as a real line would have the connection there.

        A connection is accepted one and a half round trips after it was asked for; here it is accepted at once,
        so that its first bytes, in both directions, have to make up for it.
        """
        super().connection_made(transport)
        assert self.transport is not None
        self.line.figures["connections"] += 1
        accepted = asyncio.get_running_loop().time() + 3 * self.line.delay
        far = End(self.line)
        Way(self.line, "up", self, far, accepted)
        Way(self.line, "down", far, self, accepted)
        if self.line.stalled:
            self.wait(far)
        else:
            self.call_out(far)

    def wait(self, far: End) -> None:
        """Stay unconnected until the line moves again."""
        self.waited = True
        self.line.waiting.append((self, far))

    def call_out(self, far: End, later: float = 0.0) -> None:
        """Connect to the target when the line would."""
        loop = asyncio.get_running_loop()
        loop.call_later(3 * self.line.delay + later, self._start, far)

    def _start(self, far: End) -> None:
        if self.line.stalled:
            self.wait(far)
            return
        task = asyncio.get_running_loop().create_task(self._connect(far))
        self.line.tasks.add(task)
        task.add_done_callback(self.line.tasks.discard)

    async def _connect(self, far: End) -> None:
        assert self.transport is not None
        assert self.out is not None
        gave_up = self.waited and any(not isinstance(item, bytes) for _, item in self.out.queue)
        if self.transport.is_closing() or gave_up:
            self.reset()  # no bare connection to the target, whose sshd would hold it against us
            return
        try:
            await asyncio.get_running_loop().create_connection(lambda: far, *self.line.target)
        except OSError:
            self.reset()
            return
        if self.transport.is_closing():
            far.reset()
        elif self.line.stalled:
            self.line.stall()
        else:
            self.out.deliver()


class Listener:
    """The port people connect to; while the line is cut it refuses, and nobody else can take it."""

    def __init__(self, line: Line, address: str) -> None:
        self.line = line
        self.server: asyncio.Server | None = None
        self.held = _bound(address, 0)
        self.name: tuple[str, int] = self.held.getsockname()

    async def open(self) -> None:
        """Take connections."""
        if self.server is None:
            loop = asyncio.get_running_loop()
            self.server = await loop.create_server(lambda: Near(self.line), sock=self.held, backlog=512)

    def close(self) -> None:
        """Refuse connections."""
        if self.server is not None:
            self.server.close()
            self.server = None
            self.held = _bound(*self.name)


def _bound(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    return sock


async def serve(listen: str, target: tuple[str, int], delay: float) -> None:
    """Carry connections until standard input ends."""
    line = Line(target, delay)
    listener = Listener(line, listen)
    await listener.open()
    say({"port": listener.name[1]})
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while command := await reader.readline():
        request = json.loads(command)
        if request["do"] == "stall":
            line.stall()
        elif request["do"] == "resume":
            line.resume()
        elif request["do"] == "cut":
            listener.close()
            line.cut()
        elif request["do"] == "mend":
            await listener.open()
        elif request["do"] == "delay":
            line.delay = request["seconds"]
        say({**line.figures, "open": sum(isinstance(end, Near) for end in line.ends)})


def say(answer: dict[str, Any]) -> None:
    """One line of JSON for the other side."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    event_loop = asyncio.SelectorEventLoop(PreciseSelector())
    event_loop.run_until_complete(serve(sys.argv[1], (sys.argv[2], int(sys.argv[3])), float(sys.argv[4])))
