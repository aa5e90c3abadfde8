"""The load on the practice droplet's real Triton: inference requests over HTTP, as the timeline has it."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import random
import threading
import time
from collections.abc import Callable

_WORKERS = 40
"""Requests under way to one model at most; what comes beyond is not sent."""
_STEP_S = 0.02
_TIMEOUT_S = 5.0


class Load:
    """Poisson arrivals at one model.

    Args:
        port: Triton's HTTP, on loopback.
        model: Its name.
        rate: Requests a second at this moment.
        failing: Share of the requests that shall fail at this moment.
    """

    def __init__(
        self, port: int, model: str, rate: Callable[[], float], failing: Callable[[], float], seed: int
    ) -> None:
        self._port = port
        self._path = f"/v2/models/{model}/infer"
        self._rate = rate
        self._failing = failing
        self._chance = random.Random(seed)  # noqa: S311 - a load, no secret
        self._due: queue.Queue[float] = queue.Queue(_WORKERS)

    def run(self, ended: threading.Event) -> None:
        """Send until ``ended``."""
        for _ in range(_WORKERS):
            threading.Thread(target=self._work, args=(ended,), daemon=True).start()
        following = time.monotonic()
        while not ended.wait(_STEP_S):
            rate, now = self._rate(), time.monotonic()
            if rate <= 0:
                following = now
                continue
            while following <= now:
                with contextlib.suppress(queue.Full):
                    self._due.put_nowait(-1.0 if self._chance.random() < self._failing() else 1.0)
                following += self._chance.expovariate(rate)

    def _work(self, ended: threading.Event) -> None:
        connection: http.client.HTTPConnection | None = None
        while not ended.is_set():
            try:
                value = self._due.get(timeout=0.5)
            except queue.Empty:
                if connection is not None:
                    connection.close()
                    connection = None
                continue
            tensor = {"name": "INPUT", "datatype": "FP32", "shape": [1, 1], "data": [value]}
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT_S)
                connection.request("POST", self._path, json.dumps({"inputs": [tensor]}).encode())
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                # It is down, or starting: what was due is lost, as with any client.
                if connection is not None:
                    connection.close()
                connection = None
                ended.wait(0.2)
