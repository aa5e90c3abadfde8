"""DRAM activity from a DCGM exporter that already runs here: what older GPUs than Hopper have of it.

It is only read. DCGM's profiling takes a lock over the whole machine, breaks other people's profilers and has hung
GPUs (NVIDIA/DCGM issues 56, 62, 144), so it is never started from here.
"""

from __future__ import annotations

import time
from collections.abc import Generator

from remote_scripts.triton.loopback import Answer, Request, drive
from remote_scripts.triton.prometheus import Page

PORT = 9400
"""dcgm-exporter's default."""
EVERY = 5.0
"""Seconds between two reads: by default the exporter itself looks every 30."""
PATIENCE = 0.3
NAMES = frozenset({"DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO"})
"""DCGM field 1005 under its old name and the one of 2026: a ratio, 0 to 1."""
NONE_RUNS = "no DCGM exporter answers on port 9400"
NOT_EXPORTED = "the DCGM exporter on port 9400 does not export DCGM_FI_PROF_DRAM_ACTIVE for it"

Key = tuple[str, str]
"""UUID of the GPU, and id of the GPU instance ("" for the whole GPU)."""


class DcgmExporter:
    """Reads the exporter now and then; what it said stands until the next time."""

    def __init__(self, port: int = PORT) -> None:
        self._port = port
        self._page: Page[Key] = Page(_classify)
        self._next = 0.0
        self._percent: dict[Key, float] = {}
        self._reason = NONE_RUNS

    def read(self, now: float) -> tuple[dict[Key, float], str]:
        """Percent of the DRAM's cycles in which it was busy, and why a GPU that is not in there has none.

        Args:
            now: a monotonic clock, seconds.
        """
        if now >= self._next:
            self._next = now + EVERY
            answers: list[Answer] = []
            drive([_ask(self._port, answers)], time.monotonic() + PATIENCE)
            self._take(answers[0])
        return self._percent, self._reason

    def _take(self, answer: Answer) -> None:
        self._percent = {}
        if answer.failure == "refused":
            self._reason = NONE_RUNS
        elif answer.failure:
            self._reason = f"what listens on port {self._port} is no DCGM exporter: {answer.reason}"
        elif answer.status != 200:
            self._reason = f"what listens on port {self._port} answers with HTTP status {answer.status}"
        else:
            self._reason = NOT_EXPORTED
            for key, ratio in self._page.read(answer.body):
                # DCGM's blanks (no data, not supported, no permission) are numbers from 1.4e14 on.
                if 0.0 <= ratio <= 1.0:
                    self._percent[key] = round(ratio * 100, 3)


def _ask(port: int, answers: list[Answer]) -> Generator[Request, Answer, None]:
    answers.append((yield Request(("127.0.0.1", port), "/metrics")))


def _classify(name: str, labels: dict[str, str], _: str) -> Key | None:
    uuid = labels.get("UUID") or labels.get("uuid")
    return (uuid, labels.get("GPU_I_ID", "")) if name in NAMES and uuid else None
