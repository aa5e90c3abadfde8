"""The light load behind ``make lab``: calm, then a peak, and again, until told to stop or the time is over.

    python -m tests.lab.triton.background --address 10.77.0.2 echo curve

Prints one JSON line a phase and model, and leaves with status 0 at SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import signal
import sys
import time
from collections.abc import Sequence

from tests.lab.triton.load import Result, infer_target, run_open


@dataclasses.dataclass(frozen=True, slots=True)
class Phase:
    """So many requests per second to each model, for so long."""

    name: str
    rate: float
    seconds: float


async def run(address: str, port: int, models: Sequence[str], phases: Sequence[Phase], seconds: float) -> None:
    """Go through the phases again and again for ``seconds``, the models side by side."""
    end = time.monotonic() + seconds
    turn = 0
    while (left := end - time.monotonic()) > 0:
        phase = phases[turn % len(phases)]
        await asyncio.gather(
            *(one(address, port, model, phase, min(left, phase.seconds), turn) for model in models)
        )
        turn += 1


async def one(address: str, port: int, model: str, phase: Phase, seconds: float, seed: int) -> None:
    """One model's share of one phase."""
    result = await run_open(infer_target(address, port, model), phase.rate, seconds, seed, limit=64)
    sys.stdout.write(json.dumps({"phase": phase.name, "model": model, **counts(result)}) + "\n")
    sys.stdout.flush()


def counts(result: Result) -> dict[str, object]:
    """A result without its latencies."""
    return {key: getattr(result, key) for key in ("sent", "succeeded", "failed", "skipped", "started", "ended")}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.triton.background", description=__doc__)
    parser.add_argument("models", nargs="+", help="models whose input is INPUT")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--seconds", type=float, default=3600, help="when to end (%(default)s)")
    parser.add_argument("--calm", type=float, default=4, help="requests per second and model (%(default)s)")
    parser.add_argument("--peak", type=float, default=60, help="the same in a peak (%(default)s)")
    parser.add_argument("--calm-seconds", type=float, default=40)
    parser.add_argument("--peak-seconds", type=float, default=20)
    parser.add_argument("--until-input-ends", action="store_true", help="end when standard input does")
    return parser.parse_args(arguments)


async def main(options: argparse.Namespace) -> None:
    """Run until the time is over or a signal comes."""
    phases = [Phase("calm", options.calm, options.calm_seconds), Phase("peak", options.peak, options.peak_seconds)]
    work = asyncio.ensure_future(run(options.address, options.port, options.models, phases, options.seconds))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    if options.until_input_ends:
        # Whoever started it may be killed; a later droplet with the same address must not get this load.
        asyncio.get_running_loop().add_reader(sys.stdin, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        return


if __name__ == "__main__":
    asyncio.run(main(parse()))
