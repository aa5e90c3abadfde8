"""The ``driver`` and ``gpus`` branches of the telemetry stream, without ever holding the stream up.

A driver may take half a minute to start and may hang for good with a broken GPU, in calls that nothing can
interrupt. So a thread of its own asks it, and a tick waits for the answer only so long.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from time import monotonic
from typing import Any

from remote_scripts.call import Call
from remote_scripts.files import pointer
from remote_scripts.gpu.gpu_reader import DRIVER, GPUS, GpuReader, Look

PATIENCE = 0.8
"""Seconds that a tick waits for the driver."""
IMPATIENCE = 0.02
"""Seconds that it waits while an earlier tick's question is still open."""
LATE = 3.0
"""Seconds for which the last answer stands in for one that is late; two ticks where those are longer."""
STARTING = "the NVIDIA driver has not answered yet: without a persistence daemon its start takes seconds per GPU"
IDENTITY = frozenset(
    {"index", "name", "mig", "parent", "arch", "memory_total", "max_memory_clock_mhz", "bus_width_bits"}
)
"""What stays true of a GPU while its driver hangs."""


class _Question:
    """What a tick asks, and its answer."""

    __slots__ = ("answer", "answered", "asked", "now", "servers", "slow")

    def __init__(self, now: float, slow: bool, servers: Mapping[int, str]) -> None:
        self.now = now
        self.slow = slow
        self.servers = servers
        self.asked = monotonic()
        self.answered = self.asked
        self.answer: Look | None = None


class GpuCollector:
    """Reads the GPUs; nothing is loaded before the first tick."""

    def __init__(self, call: Call, *, gpm: bool = True, patience: float = PATIENCE) -> None:
        """Does nothing yet.

        Args:
            call: the droplet's files and tools.
            gpm: False: leave NVML's GPM alone.
            patience: seconds that a tick waits for the driver.
        """
        self._reader = GpuReader(call, gpm=gpm)
        self._patience = patience
        self._thread: threading.Thread | None = None
        self._ask = threading.Semaphore(0)
        self._told = threading.Event()
        self._question: _Question | None = None
        self._slow_owed = False
        self._last: Look | None = None
        self._last_at = 0.0
        self._now: float | None = None
        self._closing = False

    def read(
        self,
        doc: dict[str, Any],
        unavailable: dict[str, str],
        *,
        tick: int,
        slow: bool,
        now: float,
        servers: Mapping[int, str] | None = None,
    ) -> None:
        """Fills ``doc["driver"]`` and ``doc["gpus"]``; never raises, never takes longer than its patience.

        Args:
            doc: the document of this tick. What is put into it must not be changed by the caller.
            unavailable: JSON pointer to the reason of what is not to be had.
            tick: its number; the first reads what is slow, too.
            slow: read what changes slowly: power limit, ECC, remapped rows, MIG layout, holders.
            now: a monotonic clock, seconds.
            servers: process id of each Triton server to the server's name, for the holders.
        """
        self._slow_owed = self._slow_owed or slow or tick == 0
        if self._collect(0.0) or self._question is None:
            self._put(_Question(now, self._slow_owed, dict(servers or {})))
            self._slow_owed = False
            self._collect(self._patience)
        else:
            self._collect(IMPATIENCE)
        look = self._last
        if look is None:
            unavailable.update({DRIVER: STARTING, GPUS: STARTING})
            return
        late = LATE if self._now is None else max(LATE, 2 * (now - self._now))
        self._now = now
        if monotonic() - self._last_at > late:
            look = self._hanging(look)
        if look.driver is not None:
            doc["driver"] = look.driver
        if look.gpus is not None:
            doc["gpus"] = look.gpus
        unavailable.update(look.unavailable)

    def close(self) -> None:
        """Shuts NVML down where it answers; a driver that hangs is left to the end of the process."""
        if self._thread is None:
            return
        self._closing = True
        self._ask.release()
        self._thread.join(1.0)

    def _put(self, question: _Question) -> None:
        self._question = question
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="gpu", daemon=True)
            self._thread.start()
        self._ask.release()

    def _collect(self, patience: float) -> bool:
        """Takes the open question's answer; False where there is none in time."""
        question = self._question
        if question is None or not (self._told.is_set() or self._told.wait(patience)):
            return False
        self._told.clear()
        self._question = None
        self._last, self._last_at = question.answer, question.answered
        return True

    def _work(self) -> None:
        """The thread: answers one question after the other."""
        while True:
            self._ask.acquire()
            question = self._question
            if self._closing or question is None:
                break
            question.answer = self._reader.read(question.now, question.slow, question.servers)
            question.answered = monotonic()
            self._told.set()
        # Here and not in close(): NVML must not be shut down under a call that is still in it.
        self._reader.close()

    def _hanging(self, last: Look) -> Look:
        """What is still true while the driver does not answer."""
        asked = self._question.asked if self._question is not None else self._last_at
        reason = f"the NVIDIA driver has not answered for {monotonic() - asked:.0f} s"
        if last.gpus is None:
            return Look(last.driver, None, {**last.unavailable, GPUS: reason})
        gpus = {}
        unavailable = {}
        for uuid, figures in last.gpus.items():
            known = {key: value for key, value in figures.items() if key in IDENTITY}
            gpus[uuid] = {**known, "state": "error", "reason": reason}
            unavailable[pointer("gpus", uuid)] = reason
        return Look(last.driver, gpus, unavailable)
