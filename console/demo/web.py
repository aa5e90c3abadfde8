"""The stand-in's HTTP endpoints on loopback: as Triton's, they refuse connections while it is down or starting."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from console.demo.ports import Ports
from console.demo.world import World

_POLL_S = 0.1
_BODY_LIMIT = 1 << 20
_LONGEST_S = 5.0


class Endpoints:
    """Both endpoints, opened and closed as the world has it."""

    def __init__(self, world: World, ports: Ports, held: list[socket.socket]) -> None:
        self._world = world
        self._ports = ports
        self._held = held
        self._servers: list[_Server] = []

    def run(self, ended: threading.Event) -> None:
        """Follow the world until ``ended``."""
        while not ended.wait(_POLL_S):
            if self._world.listening:
                self._open()
            else:
                self._close()
        self._close()

    def _open(self) -> None:
        if self._servers:
            return
        for held in self._held:
            held.close()
        self._held = []
        self._servers = [_Server(port, self._world) for port in (self._ports.http, self._ports.metrics)]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True).start()

    def _close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._servers = []


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, port: int, world: World) -> None:
        self.world = world
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nobody's business."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "stand-in"
    timeout = 30
    server: _Server

    def do_GET(self) -> None:
        """A question."""
        self._send(*self.server.world.answer("GET", self.path.partition("?")[0]))

    def do_POST(self) -> None:
        """An inference, or the repository's index."""
        path = self.path.partition("?")[0]
        size = self.headers.get("Content-Length", "0")
        length = int(size) if size.isdecimal() else 0
        if length > _BODY_LIMIT:
            self._send(413, {"error": f"the stand-in takes {_BODY_LIMIT} bytes at most"})
            return
        self.rfile.read(length)
        if path.startswith("/v2/models/") and path.endswith(("/infer", "/generate")):
            self._infer(path.split("/")[3])
        else:
            self._send(*self.server.world.answer("POST", path))

    def _infer(self, name: str) -> None:
        """It waits its turn among the simulated requests, and brings a result that says that it is none."""
        due = self.server.world.infer(name)
        if due is None:
            self._send(400, {"error": f"Request for unknown model: '{name}' is not found (stand-in)"})
            return
        time.sleep(min(due, _LONGEST_S))
        outputs = [{"name": "OUTPUT", "datatype": "FP32", "shape": [1, 1], "data": [0.0]}]
        document = {"model_name": name, "model_version": "1", "parameters": {"simulated": True}, "outputs": outputs}
        self._send(200, document)

    def _send(self, status: int, answer: Any) -> None:
        if not status:
            self.close_connection = True
            return
        text = isinstance(answer, str)
        body = (answer if text else json.dumps(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8" if text else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as http.server has it
        """Nothing is logged."""
