"""Listens as a tritonserver would, and answers as no server should.

    exec -a /opt/hostile/tritonserver python3 hostile_server.py --http-port=N --metrics-port=N WAY

On a lab droplet it is taken for a server, for it has a server's names.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ESCAPES = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202eabc\u2066\u200b\0[bold red]y[/] \ud800\r\n\t\"'~/"


def plain(body: bytes, *headers: str) -> Iterator[bytes]:
    yield "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""]).encode()
    yield body


def endless(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    while True:
        yield b'nv_inference_count{model="m",version="1"} 1\n' * 1000


def endless_head(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X-More: " + b"x" * 1000 + b"\r\n"


def dripping(_: str) -> Iterator[bytes]:
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"[" * 1000:
        yield bytes((byte,))
        time.sleep(0.1)


def packed(_: str) -> Iterator[bytes]:
    return plain(b"\x1f\x8b" + b"\0" * 1000, "Content-Encoding: gzip")


_turn = 0


def series(path: str) -> Iterator[bytes]:
    """A million series, other ones at each look; as many of them as the collector will take."""
    global _turn
    _turn += 1
    if path != "/metrics":
        return usual(path)
    page = b"".join(b'turn%d{n="%d",x="%s"} 1\n' % (_turn, number, b"y" * 40) for number in range(100_000))
    return plain(page)


def models(path: str) -> Iterator[bytes]:
    """A hundred thousand models."""
    names = [f"m{number}" for number in range(100_000)]
    if path == "/v2/repository/index":
        return plain(json.dumps([{"name": name, "version": "1", "state": "READY"} for name in names]).encode())
    if path == "/v2/models/stats":
        stats = [{"name": name, "version": "1", "execution_count": 1} for name in names]
        return plain(json.dumps({"model_stats": stats}).encode())
    return usual(path)


def strings(path: str) -> Iterator[bytes]:
    """Escapes in every string."""
    index = [
        {"name": ESCAPES, "version": "1", "state": "READY"},
        {"name": ESCAPES, "version": ESCAPES, "state": ESCAPES, "reason": ESCAPES + "x" * (1 << 20)},
    ]
    answers: dict[str, object] = {
        "/v2": {"name": "triton", "version": ESCAPES},
        "/v2/repository/index": index,
        "/v2/models/stats": {"model_stats": [{"name": ESCAPES, "version": "1", "execution_count": 3}]},
    }
    if path == "/metrics":
        return plain(b'custom{model="m",x="\x1b]0;owned\x07\xe2\x80\xae\xff[red]"} 1\n')
    if path.endswith("/config"):
        return plain(json.dumps({"backend": ESCAPES, "max_batch_size": "8"}).encode())
    return plain(json.dumps(answers.get(path, {})).encode())


def usual(path: str) -> Iterator[bytes]:
    return plain(b"[]" if path == "/v2/repository/index" else b"{}")


WAYS: dict[str, Callable[[str], Iterator[bytes]]] = {
    "endless": endless,
    "endless-head": endless_head,
    "dripping": dripping,
    "packed": packed,
    "series": series,
    "models": models,
    "strings": strings,
}


def serve(connection: socket.socket, way: Callable[[str], Iterator[bytes]]) -> None:
    with connection:
        try:
            while request := connection.recv(65536):
                for piece in way(request.split(b" ")[1].decode("latin-1")):
                    connection.sendall(piece)
                if b"Connection: close" in request:
                    return
        except OSError:
            return  # it had enough


def main() -> None:
    Path("/proc/self/comm").write_text("tritonserver")
    port = next(int(word.partition("=")[2]) for word in sys.argv if word.startswith("--http-port="))
    metrics = next(int(word.partition("=")[2]) for word in sys.argv if word.startswith("--metrics-port="))
    for number in (port, metrics):
        listener = socket.create_server(("127.0.0.1", number))
        threading.Thread(target=accept, args=(listener,)).start()


def accept(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, WAYS[sys.argv[-1]]), daemon=True).start()


if __name__ == "__main__":
    main()
