"""A load whose counts are known exactly, always bounded in number and time, from the standard library alone.

As a command (``python -m tests.lab.triton.load --help``) it is the background load of ``make lab``.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.lab.triton.api import infer_body
from tests.lab.triton.http_stream import Connection

TIMEOUT_S = 30.0
MOST_REQUESTS = 1_000_000
MOST_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Target:
    """What to send, and where; the bodies take turns."""

    address: str
    port: int
    path: str
    bodies: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What was sent and what became of it; ``sent == succeeded + sum(failed.values())``."""

    sent: int
    succeeded: int
    failed: Mapping[str, int]
    """By kind: "HTTP 500", "error event" within a stream, "connection", "timeout"."""
    skipped: int
    """Of an open loop: due, and not sent, because too many were under way."""
    responses: int
    """Of streams: the events that arrived; otherwise the same as ``succeeded``."""
    started: float
    """Unix seconds, like ``ended``: the first request's start and the last one's end."""
    ended: float
    latencies_s: Sequence[float] = field(repr=False)
    """Of the successful ones, sorted."""

    @property
    def rps(self) -> float:
        """Requests that came to an end, per second of the whole window."""
        return self.sent / max(self.ended - self.started, 1e-9)


def infer_target(address: str, port: int, model: str, values: Iterable[int] = (0,), batch: int = 1) -> Target:
    """Inference requests to a model whose input is INPUT; ``values`` take turns."""
    bodies = tuple(json.dumps(infer_body(value, batch)).encode() for value in values)
    return Target(address, port, f"/v2/models/{model}/infer", bodies)


def stream_target(address: str, port: int, model: str, inputs: Mapping[str, object]) -> Target:
    """Requests to a decoupled model, which the HTTP port answers as a stream of events only."""
    return Target(address, port, f"/v2/models/{model}/generate_stream", (json.dumps(inputs).encode(),))


def closed_loop(target: Target, requests: int, concurrency: int, seconds: float = 120.0) -> Result:
    """Send ``requests`` over ``concurrency`` connections, each waiting for its answer before the next.

    It ends when all are answered, or after ``seconds`` with those under way answered.
    """
    return asyncio.run(run_closed(target, requests, concurrency, seconds))


def open_loop(target: Target, rate: float, seconds: float, seed: int | None = None, limit: int = 256) -> Result:
    """Send at ``rate`` per second for ``seconds``, whatever the answers do.

    Args:
        target: what to send.
        rate: requests per second.
        seconds: for how long requests are started.
        seed: makes the arrivals a Poisson process, the same for the same seed; evenly spaced without.
        limit: most requests under way; what is due beyond is skipped, and counted as such.
    """
    return asyncio.run(run_open(target, rate, seconds, seed, limit))


async def run_closed(target: Target, requests: int, concurrency: int, seconds: float) -> Result:
    """``closed_loop`` within a running event loop."""
    tally = _Tally(target)
    deadline = time.monotonic() + min(seconds, MOST_SECONDS)
    bodies = iter(tally.bodies(min(requests, MOST_REQUESTS)))

    async def worker() -> None:
        connection = Connection(target.address, target.port)
        try:
            for body in bodies:
                await tally.send(connection, body)
                if time.monotonic() > deadline:
                    return
        finally:
            await connection.close()

    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return tally.result()


async def run_open(target: Target, rate: float, seconds: float, seed: int | None, limit: int) -> Result:
    """``open_loop`` within a running event loop."""
    tally = _Tally(target)
    idle: list[Connection] = []
    under_way: set[asyncio.Task[None]] = set()

    async def one(body: bytes) -> None:
        connection = idle.pop() if idle else Connection(target.address, target.port)
        await tally.send(connection, body)
        idle.append(connection)

    start = time.monotonic()
    for due, body in zip(
        arrivals(rate, min(seconds, MOST_SECONDS), seed), tally.bodies(MOST_REQUESTS), strict=False
    ):
        await asyncio.sleep(max(0.0, start + due - time.monotonic()))
        if len(under_way) >= limit:
            tally.skipped += 1
            continue
        task = asyncio.create_task(one(body))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    await _each(idle, Connection.close)
    return tally.result()


def arrivals(rate: float, seconds: float, seed: int | None) -> Iterator[float]:
    """When requests are due, in seconds from the start."""
    chance = random.Random(seed)
    due = 0.0 if seed is None else chance.expovariate(rate)
    while due < seconds:
        yield due
        due += 1 / rate if seed is None else chance.expovariate(rate)


class _Tally:
    """The counts while a load runs."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.sent = self.succeeded = self.skipped = self.responses = 0
        self.failed: Counter[str] = Counter()
        self.latencies: list[float] = []
        self.started = self.ended = time.time()

    def bodies(self, count: int) -> Iterator[bytes]:
        return (self.target.bodies[number % len(self.target.bodies)] for number in range(count))

    async def send(self, connection: Connection, body: bytes) -> None:
        self.sent += 1
        begun = time.monotonic()
        failure = await self._post(connection, body)
        self.ended = time.time()
        if failure is None:
            self.succeeded += 1
            self.latencies.append(time.monotonic() - begun)
        else:
            self.failed[failure] += 1

    async def _post(self, connection: Connection, body: bytes) -> str | None:
        try:
            answer = await asyncio.wait_for(connection.post(self.target.path, body), TIMEOUT_S)
        except asyncio.TimeoutError:
            await connection.close()
            return "timeout"
        except OSError:
            await connection.close()
            return "connection"
        if answer.status != 200:
            return f"HTTP {answer.status}"
        events = answer.body.count(b"data: ")
        if b'data: {"error"' in answer.body:
            return "error event"
        self.responses += events if self.target.path.endswith("_stream") else 1
        return None

    def result(self) -> Result:
        return Result(
            sent=self.sent,
            succeeded=self.succeeded,
            failed=dict(self.failed),
            skipped=self.skipped,
            responses=self.responses,
            started=self.started,
            ended=self.ended,
            latencies_s=sorted(self.latencies),
        )


async def _each(connections: Iterable[Connection], do: Callable[[Connection], Awaitable[None]]) -> None:
    await asyncio.gather(*(do(connection) for connection in connections))
