"""What the tests ask a server for, each over a connection of its own: a held one delays every Triton restart."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class AnswerError(RuntimeError):
    """The server answered with another status than 200."""

    def __init__(self, what: str, status: int, body: str) -> None:
        super().__init__(f"{what}: HTTP {status}: {body.strip()[:500]}")
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True)
class Api:
    """The HTTP and metrics ports of one server."""

    address: str
    http: int = 8000
    metrics_port: int | None = 8002
    timeout_s: float = 10.0

    def request(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Status and body of one request; ``body`` goes out as JSON."""
        return self._exchange(self.http, method, path, body, headers)

    def get(self, path: str) -> Any:
        """The JSON of a GET; AnswerError for any status but 200."""
        return _json(f"GET {path}", *self.request("GET", path))

    def post(self, path: str, body: object) -> Any:
        """The JSON of a POST, {} where the answer has no body; AnswerError for any status but 200."""
        return _json(f"POST {path}", *self.request("POST", path, body))

    def statistics(self, model: str | None = None) -> list[dict[str, Any]]:
        """The statistics of every ready model version, or of one model's."""
        found: list[dict[str, Any]] = self.get(f"/v2/models/{model}/stats" if model else "/v2/models/stats")[
            "model_stats"
        ]
        return found

    def metrics(self) -> str:
        """The metrics' text."""
        if self.metrics_port is None:
            raise ValueError("this server was started without metrics")
        status, body = self._exchange(self.metrics_port, "GET", "/metrics", None, None)
        if status != 200:
            raise AnswerError("GET /metrics", status, body)
        return body

    def index(self) -> list[dict[str, Any]]:
        """The repository index: name, version, state and reason of what the repository holds."""
        found: list[dict[str, Any]] = self.post("/v2/repository/index", {})
        return found

    def config(self, model: str) -> dict[str, Any]:
        """A model's config in force."""
        found: dict[str, Any] = self.get(f"/v2/models/{model}/config")
        return found

    def load(self, model: str, config: Mapping[str, Any] | None = None) -> None:
        """Load or reload a model, with another config than the one on disk where given."""
        self.post(
            f"/v2/repository/models/{model}/load", {"parameters": {"config": json.dumps(config)}} if config else {}
        )

    def unload(self, model: str) -> None:
        """Unload a model; returns when the unload is asked for, not when it is done."""
        self.post(f"/v2/repository/models/{model}/unload", {})

    def infer(self, model: str, value: int = 0, batch: int = 1) -> Any:
        """One request to a model whose input is INPUT; AnswerError where it fails."""
        return self.post(f"/v2/models/{model}/infer", infer_body(value, batch))

    def ready(self) -> bool:
        """Whether /v2/health/ready says so; False also where nobody listens."""
        try:
            return self.request("GET", "/v2/health/ready")[0] == 200
        except OSError:
            return False

    def listens(self, metrics: bool = False) -> bool:
        """Whether somebody accepts on the HTTP port, or on the metrics port."""
        try:
            self._exchange((self.metrics_port or 0) if metrics else self.http, "GET", "/", None, None)
        except OSError:
            return False
        return True

    def wait_listening(self, timeout_s: float = 30.0) -> None:
        """Wait until all its ports accept: for a server that says nothing about its readiness."""
        metrics = self.metrics_port is not None
        self._wait(
            lambda: self.listens() and (not metrics or self.listens(metrics=True)), timeout_s, "is not there"
        )

    def wait_ready(self, timeout_s: float = 30.0) -> None:
        """Wait until the server is ready and its metrics, which open last, are there; TimeoutError where not."""
        deadline = time.monotonic() + timeout_s
        self._wait(self.ready, timeout_s, "is not ready")
        self.wait_listening(max(1.0, deadline - time.monotonic()))

    def wait_state(self, model: str, state: str, timeout_s: float = 30.0) -> None:
        """Wait until the index has the model in this state; TimeoutError where it has not in time."""
        self._wait(
            lambda: any(one["name"] == model and one.get("state") == state for one in self.index()),
            timeout_s,
            f"has no {model} in state {state}",
        )

    def _wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"Triton at {self.address}:{self.http} {what} after {timeout_s:g} s")
            time.sleep(0.05)

    def _exchange(
        self, port: int, method: str, path: str, body: object, headers: Mapping[str, str] | None
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.address, port, timeout=self.timeout_s)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {"Connection": "close", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        finally:
            connection.close()


def infer_body(value: int = 0, batch: int = 1) -> dict[str, Any]:
    """The body of an inference request to a model whose input is INPUT, every item of the batch the same."""
    tensor = {"name": "INPUT", "datatype": "INT32", "shape": [batch, 1], "data": [value] * batch}
    return {"inputs": [tensor]}


def _json(what: str, status: int, body: str) -> Any:
    if status != 200:
        raise AnswerError(what, status, body)
    return json.loads(body) if body.strip() else {}
