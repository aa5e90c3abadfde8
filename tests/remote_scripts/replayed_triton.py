"""The captured answers of a real Triton (tests/data/triton), served over HTTP, with what a test wants broken."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.remote_scripts.scripted_server import ScriptedServer, respond

DATA = Path(__file__).parent.parent / "data" / "triton"
_FILES = {
    "/v2": "server.json",
    "/v2/health/ready": "ready.json",
    "/v2/repository/index": "index.json",
    "/v2/models/stats": "stats.json",
    "/metrics": "metrics.txt",
}


class ReplayedTriton:
    """Answers as the captured server did in one situation.

    Attributes:
        folder: the situation, a folder of the captures; may be changed between two ticks.
        broken: by path, the raw bytes to answer instead; None for silence.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.broken: dict[str, bytes | None] = {}
        self._server = ScriptedServer(self._answer)

    @property
    def port(self) -> int:
        return self._server.address[1]

    @property
    def paths(self) -> list[str]:
        """What was asked for, in order."""
        return [request.split(b" ", 2)[1].decode() for request in self._server.requests]

    def forget(self) -> None:
        self._server.requests.clear()

    def close(self) -> None:
        self._server.close()

    def _answer(self, connection: socket.socket, request: bytes) -> None:
        path = request.split(b" ", 2)[1].decode()
        if path in self.broken:
            raw = self.broken[path]
            if raw is None:
                connection.recv(1)
            else:
                connection.sendall(raw)
            return
        connection.sendall(self._captured(path))

    def _captured(self, path: str) -> bytes:
        if path.endswith("/config"):
            file = DATA / "config" / f"{path.split('/')[3]}.json"
            if self.folder == "restricted":
                file = DATA / "restricted" / "config.json"
        else:
            file = DATA / self.folder / _FILES.get(path, "none")
            if not file.exists() and path in ("/v2", "/v2/health/ready"):
                return respond((DATA / "idle" / "server.json").read_bytes() if path == "/v2" else b"")
        if not file.exists():
            return respond(b'{"error":"not found"}', "404 Not Found")
        body = file.read_bytes()
        held: Any = json.loads(body) if file.suffix == ".json" else None
        if isinstance(held, dict) and held.keys() == {"status", "body"}:
            return respond(held["body"].encode(), f"{held['status']} Captured")
        return respond(body)


@contextmanager
def replayed(folder: str) -> Iterator[ReplayedTriton]:
    triton = ReplayedTriton(folder)
    try:
        yield triton
    finally:
        triton.close()
