"""Run the benchmarks that are named, or all of them."""

from __future__ import annotations

import argparse
import importlib
import sys

from benchmarks.figure import Figure

NAMES = ("start", "first_tick", "collector", "fleet", "screens")


def main() -> int:
    """Print a line a figure; exit status 1 where a bound is not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; none: all")
    chosen = parser.parse_args().names or list(NAMES)
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    figures: list[Figure] = []
    for name in chosen:
        for figure in importlib.import_module(f"benchmarks.{name}").run():
            print(figure, flush=True)
            figures.append(figure)
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
