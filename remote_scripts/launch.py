"""Runs one remote script: says hello, watches for the end of the line, and tells how the script failed."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any

from remote_scripts import children
from remote_scripts.call import DEFAULT_PATH, Call, Sink

MARK = b"\x01droplet-console/1 "
_ending = threading.Lock()
"""Taken by whoever ends this process, the script or the line, and never given back."""
FAILED = 70
"""Exit status of a script that raised (sysexits.h: EX_SOFTWARE)."""


class PlainOutput:
    """Standard output as it is."""

    def fileno(self) -> int:
        """Of standard output: whether it is writable can be polled."""
        return 1

    def write(self, data: bytes, /) -> None:
        """Send all of ``data`` on."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(1, rest) :]

    def flush(self) -> None:
        """Everything is sent already."""


class CompressedOutput(PlainOutput):
    """Standard output as one zlib stream; ``flush`` makes all that was written readable on the other side."""

    def __init__(self) -> None:
        # 16 KiB of window: enough for lines that repeat the last few, at 96 KiB of memory instead of 268.
        self._stream = zlib.compressobj(6, zlib.DEFLATED, 14, 6)

    def write(self, data: bytes, /) -> None:
        """Take ``data``."""
        super().write(self._stream.compress(data))

    def flush(self) -> None:
        """Send what was taken."""
        super().write(self._stream.flush(zlib.Z_SYNC_FLUSH))


def main(call: dict[str, Any], *, cached: bool) -> None:
    """Run the script that ``call`` names (docs/wire.md 1) and end this process."""
    _lead_a_group()
    threading.Thread(target=_end_with_the_line, name="line", daemon=True).start()
    compress = "zlib" if call.get("compress", True) else None
    hello: dict[str, Any] = {
        "hello": 1,
        "python": ".".join(map(str, sys.version_info[:3])),
        "uid": os.geteuid(),
        "cached": cached,
        "compress": compress,
    }
    if "uncached" in call:
        hello["uncached"] = call["uncached"]
    PlainOutput().write(MARK + json.dumps(hello).encode("ascii") + b"\n")
    sink = CompressedOutput() if compress else PlainOutput()
    status = _run(call, sink)
    sys.stderr.flush()
    _ending.acquire()
    _end_children(signal.SIGTERM)
    os._exit(status)  # the line's thread stands in a read that nothing else ends


def _run(call: dict[str, Any], sink: Sink) -> int:
    given = Call(
        request=call.get("request") or {},
        sink=sink,
        root=Path(call.get("root") or "/"),
        path=tuple(call.get("path") or DEFAULT_PATH),
    )
    try:
        name = call["script"]
        if not (name.isidentifier() and name.islower()):
            raise ValueError(f"{name!r} is no name of a script")
        importlib.import_module(f"remote_scripts.{name}").main(given)
    except BrokenPipeError:
        return 0  # nobody listens
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        with contextlib.suppress(BrokenPipeError):
            given.emit({"error": "internal", "message": _message(error), "where": _where(error.__traceback__)})
        return FAILED
    return 0


def _message(error: BaseException) -> str:
    import traceback  # only where it is needed: this process lives long

    return traceback.format_exception_only(type(error), error)[-1].strip()[:2000]


def _where(trace: TracebackType | None) -> str:
    """File and line of the innermost frame that is ours."""
    import traceback

    frames = traceback.extract_tb(trace)
    ours = [frame for frame in frames if "remote_scripts" in frame.filename] or frames
    if not ours:
        return "?"
    return f"{ours[-1].filename.rpartition('/')[2]}:{ours[-1].lineno}"


def _lead_a_group() -> None:
    """Lead a process group, so that all of it can be ended and nothing else."""
    if os.getpgrp() != os.getpid():
        with contextlib.suppress(PermissionError):
            os.setpgid(0, 0)


def _end_with_the_line() -> None:
    """Wait for the end of standard input, then end every child and this process."""
    with contextlib.suppress(OSError):
        while os.read(0, 1 << 16):
            pass
    _ending.acquire()
    _end_children(signal.SIGKILL)
    os._exit(0)


def _end_children(number: signal.Signals) -> None:
    """End the tools that run, and then what else is in our group: with SIGKILL that is this process, too."""
    children.end_all()
    if os.getpgrp() == os.getpid():
        if number is not signal.SIGKILL:
            signal.signal(number, signal.SIG_IGN)
        os.killpg(0, number)
