"""Seeing processes: those of a lab droplet are among this machine's own."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

_numbers = itertools.count(1)


def long_sleep() -> str:
    """Seconds for ``sleep`` that nobody else on this machine sleeps."""
    return f"{10_000 + os.getpid()}.{next(_numbers)}"


def sleepers(seconds: str) -> list[int]:
    """The pids of the ``sleep SECONDS`` that live."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[1:2] == [seconds.encode()] and words[0].rpartition(b"/")[2] == b"sleep":
                found.append(int(folder.name))
    return found


def wait_for(seconds: str, count: int, within: float = 10.0) -> None:
    """Wait until so many of them live."""
    deadline = time.monotonic() + within
    while len(found := sleepers(seconds)) != count:
        assert time.monotonic() < deadline, f"{len(found)} live, not {count}"
        time.sleep(0.02)
