"""How long `--help` takes, against the bare interpreter."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.figure import Figure, median

ROUNDS = 15


def run() -> list[Figure]:
    """`--help` and `config`-free commands must start like a shell tool."""
    bare, ours = [], []
    # Interleaved, so that whatever else the machine does falls on both.
    for _ in range(ROUNDS):
        bare.append(_seconds([sys.executable, "-c", "pass"]))
        ours.append(_seconds([sys.executable, "-m", "console", "--help"]))
    detail = f"{median(ours) * 1000:.0f} ms against {median(bare) * 1000:.0f} ms"
    return [Figure("--help against `python -c pass`", median(ours) / median(bare), 5.0, "x", detail)]


def _seconds(argv: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, timeout=60)
    return time.perf_counter() - began
