"""``python -m tests.lab setup``: build what the lab needs. ``python -m tests.lab up``: keep a droplet running."""

from __future__ import annotations

import argparse
import sys

from tests.lab import setup


def main() -> int:
    """Run one of the lab's commands; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="install and build what the lab needs; quick where that is done")
    commands.add_parser("up", help="keep one droplet running until Ctrl-C")
    if parser.parse_args().command == "setup":
        return setup.main()
    from tests.lab import up

    return up.main()


if __name__ == "__main__":
    sys.exit(main())
