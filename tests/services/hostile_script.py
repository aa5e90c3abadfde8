"""A droplet's script gone wrong, by the name of the way: ``python hostile_script.py WAY``; ends with its input.

It stands in for python3 on a droplet, so what it writes is what an SSH channel would bring.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Step = bytes | float
"""What is sent next, or the seconds until it is."""

ESCAPES = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202eabc\u2066\u200b\0[bold red]y[/] \ud800\r\n\t"


def hello(**more: object) -> bytes:
    said: dict[str, object] = {"hello": 1, "python": "3.11.2", "uid": 0, "cached": True, "compress": None, **more}
    return b"\x01droplet-console/1 " + json.dumps(said).encode() + b"\n"


def tick(seq: int, **more: object) -> bytes:
    line: dict[str, Any] = {"seq": seq, "time": time.time(), "mono": 100.0 + seq, "full": True}
    line["doc"] = {"host": {"hostname": "sound", "load1": 1.0}}
    return json.dumps(line | more).encode() + b"\n"


def line(fields: bytes) -> bytes:
    """A whole tick whose last fields are these bytes."""
    return b'{"seq":0,"time":1,"mono":1,"full":true,' + fields + b"}\n"


def host(fields: bytes) -> bytes:
    return line(b'"doc":{"host":{' + fields + b"}}")


def ticks(first: int = 0) -> Iterator[Step]:
    seq = first
    while True:
        yield tick(seq)
        yield 0.2
        seq += 1


def after(*steps: Step) -> Iterator[Step]:
    """Hello, these, and then ticks as they should be."""
    yield hello()
    yield from steps
    yield from ticks(1)


def then_silence(*steps: Step) -> Iterator[Step]:
    yield from steps
    yield 600.0


def endless(*first: Step, again: Callable[[int], bytes]) -> Iterator[Step]:
    yield from first
    count = 0
    while True:
        yield again(count)
        count += 1


def inflated(piece: bytes, size: int) -> Iterator[Step]:
    """A zlib stream that grows by a factor of a thousand on the other side, without end."""
    deflate = zlib.compressobj(9)
    yield hello(compress="zlib")
    while True:
        yield deflate.compress(piece * (size // len(piece))) + deflate.flush(zlib.Z_SYNC_FLUSH)


def wiped() -> Iterator[Step]:
    whole = {
        "host": {"hostname": "sound", "load1": 1.0},
        "gpus": {"g": {"index": 0, "name": "GPU"}},
        "servers": {"t": {"state": "ready", "models": {"m": {"1": {"state": "READY", "success": 1}}}}},
    }
    yield hello()
    for seq in range(0, 1000, 2):
        yield tick(seq, doc=whole)
        yield 0.2
        nothing = dict.fromkeys((*whole, "driver", "unavailable"))
        yield tick(seq + 1, doc=nothing, full=False)
        yield 0.2


def evil_strings() -> Mapping[str, object]:
    model = {"state": "READY", "backend": ESCAPES, "reason": ESCAPES, "series": {ESCAPES: 1.5}, "success": 1}
    broken = {"state": ESCAPES, "reason": "x" * (1 << 20) + ESCAPES}
    server: dict[str, object] = {
        "state": ESCAPES,
        "reason": ESCAPES,
        "how": ESCAPES,
        "unit": ESCAPES,
        "version": ESCAPES,
    }
    server |= {"http": ESCAPES, "models": {ESCAPES: {ESCAPES: model, "2": broken}}}
    holder = {"pid": 1, "process": ESCAPES, "memory": 5, "container": ESCAPES, "unit": ESCAPES, "model": ESCAPES}
    gpu = {"index": 0, "name": ESCAPES, "throttle": [ESCAPES], "holders": [holder], "memory_busy": 4}
    return {
        "host": {"hostname": ESCAPES, "boot_id": ESCAPES},
        "driver": {"source": ESCAPES, "version": ESCAPES},
        "gpus": {ESCAPES: gpu, "lost": {"index": 1, "state": ESCAPES, "reason": ESCAPES}},
        "servers": {ESCAPES: server},
        "unavailable": {"/host/load1": ESCAPES, f"/gpus/{ESCAPES}/dram_percent": ESCAPES, "/host/cpu": ESCAPES},
    }


WAYS: dict[str, Callable[[], Iterator[Step]]] = {
    # Lines that are taken, whatever stands in them.
    "strings": lambda: after(tick(0, doc=evil_strings())),
    "too large for a float": lambda: after(host(b'"load1":' + b"9" * 4000)),
    "infinite": lambda: after(host(b'"load1":1e999,"booted":-1e999')),
    "keys twice": lambda: after(line(b'"doc":[],"seq":7,"seq":0,"doc":{"host":{"load1":1,"load1":"x"}}')),
    "300,000 keys": lambda: after(tick(0, doc={str(number): {} for number in range(300_000)})),
    "a million lists": lambda: after(line(b'"x":[' + b"[]," * 1_000_000 + b"[]]" + b',"doc":{}')),
    "a million series": lambda: after(
        line(b'"doc":{"servers":{"t":{"series":{' + b",".join(b'"%x":1' % n for n in range(250_000)) + b"}}}}")
    ),
    "everything taken away": wiped,
    "hello of wrong types": lambda: (
        step
        for part in ([hello(python=[1], uid="x", compress=["zlib"], uncached=ESCAPES)], ticks())
        for step in part
    ),
    # Lines that are not.
    "not UTF-8": lambda: then_silence(hello(), host(b'"hostname":"\xff\xfe\x1b[31m"')),
    "NaN": lambda: then_silence(hello(), line(b'"doc":{},"missed":NaN')),
    "too many digits": lambda: then_silence(hello(), host(b'"load1":' + b"9" * (3 << 20))),
    "10,000 deep": lambda: then_silence(hello(), b'{"doc":' * 10_000 + b"\n"),
    "no object": lambda: then_silence(hello(), b"[1]\n"),
    "half a line": lambda: iter((hello(), tick(0), tick(1)[:30])),
    "its own failure": lambda: then_silence(
        hello(), json.dumps({"error": "internal", "message": ESCAPES, "where": ESCAPES}).encode() + b"\n"
    ),
    "not zlib": lambda: then_silence(hello(compress="zlib"), b"garbage" * 100),
    # What has no end.
    "a line without end": lambda: endless(hello(), again=lambda _: b"x" * 65536),
    "empty lines": lambda: endless(hello(), again=lambda _: b"\n" * 65536),
    "empty lines, packed": lambda: inflated(b"\n", 1 << 24),
    "a line without end, packed": lambda: inflated(b"x", 1 << 24),
    "small lines, packed": lambda: inflated(b"{}\n", 1 << 24),
    "a flood": lambda: endless(hello(), again=lambda count: b"".join(tick(100 * count + n) for n in range(100))),
    "noise before the hello": lambda: endless(again=lambda _: os.urandom(65536)),
    "marks before the hello": lambda: endless(again=lambda _: b'\x01droplet-console/1 {"sh":1}\n' * 1000),
    "the largest lines": lambda: endless(
        hello(),
        again=lambda count: (
            b'{"seq":%d,"time":1,"mono":%d,"full":true,"doc":{},"x":[' % (count, count)
            + b"[]," * 1_390_000
            + b"[]]}\n"
        ),
    ),
}


def main() -> None:
    threading.Thread(target=_end_with_input, daemon=True).start()
    for step in WAYS[sys.argv[1]]():
        if isinstance(step, float):
            time.sleep(step)
        else:
            sys.stdout.buffer.write(step)
            sys.stdout.buffer.flush()


def _end_with_input() -> None:
    while os.read(0, 65536):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
