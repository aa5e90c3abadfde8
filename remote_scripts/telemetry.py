"""The telemetry stream: one line a tick with what is true about this droplet now (docs/wire.md 3)."""

from __future__ import annotations

import select
import time
from collections.abc import Mapping
from typing import Any

from remote_scripts.call import Call, LineTooLong
from remote_scripts.files import cut
from remote_scripts.gpu.collector import GpuCollector
from remote_scripts.patch import diff
from remote_scripts.system.host import HostCollector
from remote_scripts.ticks import Ticks
from remote_scripts.trim import LEVELS, trim
from remote_scripts.triton.collector import TritonCollector

INTERVAL = 1.0
SHORTEST = 0.1
FULL_EVERY = 30
SLOW_EVERY = 10
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine sleeps; only Linux has it."""


def main(call: Call) -> None:
    """Stream until nobody reads any more.

    The request: ``interval`` in seconds, ``full_every`` and ``slow_every`` in ticks, ``servers`` (name and ports of
    Triton servers that cannot be found), ``gpm``: whether NVML's GPM may be used.
    """
    request = call.request
    interval = max(_number(request.get("interval"), INTERVAL), SHORTEST)
    stream = Stream(
        call,
        full_every=int(max(_number(request.get("full_every"), FULL_EVERY), 1)),
        slow_every=int(max(_number(request.get("slow_every"), SLOW_EVERY), 1)),
    )
    ticks = Ticks(time.monotonic(), interval)
    try:
        while True:
            if stream.writable():
                stream.tick()
            else:
                stream.miss(1)
            stream.miss(ticks.pass_on(time.monotonic()))
            time.sleep(max(ticks.due - time.monotonic(), 0.0))
    except BrokenPipeError:
        return
    finally:
        stream.close()


class Stream:
    """Takes ticks and sends them."""

    def __init__(self, call: Call, *, full_every: int, slow_every: int) -> None:
        self._call = call
        self._full_every = full_every
        self._slow_every = slow_every
        self._host = HostCollector(call)
        self._gpus = GpuCollector(call, gpm=call.request.get("gpm") is not False)
        listed = call.request.get("servers")
        entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
        self._triton = TritonCollector(call, entries)
        self._sent: dict[str, Any] = {}
        self._seq = 0
        self._taken = 0
        self._missed = 0
        self._level = 0

    def writable(self) -> bool:
        """Whether a line can be sent now: a slow connection shall cost ticks, not memory or the truth's age."""
        fileno = getattr(self._call.sink, "fileno", None)
        if fileno is None:
            return True
        poll = select.poll()
        poll.register(fileno(), select.POLLOUT)
        # An error counts as writable: the write then tells it.
        return bool(poll.poll(0))

    def miss(self, count: int) -> None:
        """Count ticks that were due and are not sent."""
        self._missed += count

    def tick(self) -> None:
        """Take one tick and send it.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        now = time.time()
        mono = time.clock_gettime(CLOCK)
        document = self._take(mono)
        if self._level:
            trim(document, self._level)
        full = self._seq % self._full_every == 0
        line: dict[str, Any] = {"seq": self._seq, "time": round(now, 3), "mono": round(mono, 3), "full": full}
        if self._missed:
            line["missed"] = self._missed
        self._send(line, document)
        self._sent = document
        self._seq += 1
        self._missed = 0

    def close(self) -> None:
        """Give back what the collectors hold."""
        self._gpus.close()

    def _take(self, mono: float) -> dict[str, Any]:
        tick, slow = self._taken, self._taken % self._slow_every == 0
        self._taken += 1
        document: dict[str, Any] = {}
        unavailable: dict[str, str] = {}
        servers: dict[int, str] = {}
        trouble: Exception | None = None
        try:
            servers = self._triton.look(tick=tick, slow=slow)
        except Exception as error:
            trouble = error
        # Counters first, while the line's clock is true for them: a driver may take its time.
        self._host.read(document, unavailable, slow=slow)
        try:
            self._triton.read(document, unavailable, tick=tick, slow=slow)
        except Exception as error:
            trouble = error
        self._gpus.read(document, unavailable, tick=tick, slow=slow, now=mono, servers=servers)
        if trouble is not None:
            # A mistake of ours in what is said about Triton shall not take the GPUs' and the host's figures away.
            unavailable["/servers"] = cut(f"the look for Triton failed: {type(trouble).__name__}: {trouble}")
        if unavailable:
            document["unavailable"] = unavailable
        return document

    def _send(self, line: dict[str, Any], document: dict[str, Any]) -> None:
        while True:
            line["doc"] = document if line["full"] else diff(self._sent, document)
            try:
                self._call.emit(line)
            except LineTooLong:
                # What had to go once stays away, or every full line would be made twice.
                self._level += 1
                if self._level > LEVELS:
                    raise
                trim(document, self._level)
            else:
                return


def _number(value: object, default: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return default
    return min(float(value), 1e6) if value == value else default
