"""The flags that mean the same everywhere, before and after the command.

Each command names those it can honour. The others are refused with the reason, never ignored: a person who wrote
``--dry-run`` must not believe that it did something.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.cli.exits import UsageError

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True, slots=True)
class Options:
    """The shared flags as given.

    Attributes:
        config: The settings file, or None for the usual places.
        json: JSON on standard output and nothing else there.
        read_only: Refuse whatever would change a droplet.
        dry_run: Show what would be done, and do nothing.
        yes: Do not ask for confirmation; never stands in for a name that must be typed.
        timeout: Seconds to wait for a droplet, or None for the command's own.
        server: The Triton server meant where a droplet runs several.
    """

    config: str | None = None
    json: bool = False
    read_only: bool = False
    dry_run: bool = False
    yes: bool = False
    timeout: float | None = None
    server: str | None = None


ALWAYS = frozenset({"config", "json", "read_only"})
"""Every command honours these: a read-only command keeps ``--read-only`` by what it is."""

_REFUSALS = {
    "json": "shows screens; for JSON there are `status` and `watch`",
    "dry_run": "changes nothing, so there is nothing to try out",
    "yes": "asks for no confirmation",
    "timeout": "waits for no droplet",
    "server": "asks no Triton server",
}


def seconds(text: str) -> float:
    """A positive number of seconds, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 86400:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text!r} is not a number of seconds above 0, up to 86400")
    return value


def add(parser: argparse.ArgumentParser, honoured: frozenset[str]) -> None:
    """Add the shared flags to a parser; its help shows those in ``honoured``, the others are taken to be refused.

    No flag has a default in argparse: a command's parser would overwrite with it what stood before the command.
    """
    from argparse import SUPPRESS

    group = parser.add_argument_group("flags that mean the same everywhere")

    def flag(name: str, words: str, **more: object) -> None:
        shown = words if name.strip("-").replace("-", "_") in honoured else SUPPRESS
        group.add_argument(name, default=SUPPRESS, help=shown, **more)  # type: ignore[arg-type]

    flag("--config", "settings file; default: $DROPLET_CONSOLE_CONFIG, then the config folder", metavar="FILE")
    flag("--json", "JSON on standard output, and nothing else there", action="store_true")
    flag("--read-only", "refuse whatever would change a droplet", action="store_true")
    flag("--dry-run", "show what would be done, and do nothing", action="store_true")
    flag("--yes", "do not ask for confirmation", action="store_true")
    patience = "seconds to wait for a droplet; default: 30 for status, no end for watch"
    flag("--timeout", patience, metavar="S", type=seconds)
    flag("--server", "the Triton server, where a droplet runs several", metavar="NAME")


def read(arguments: argparse.Namespace, command: str, honoured: frozenset[str]) -> Options:
    """The shared flags of a parsed command line.

    Args:
        arguments: As argparse gave them.
        command: What is run, for the message: "`watch`".
        honoured: The flags that it can honour.

    Raises:
        UsageError: A flag was given that the command cannot honour.
    """
    for name, reason in _REFUSALS.items():
        if name not in honoured and getattr(arguments, name, None):
            raise UsageError(f"--{name.replace('_', '-')} has no meaning here: {command} {reason}")
    given = {name: getattr(arguments, name) for name in Options.__slots__ if hasattr(arguments, name)}
    return Options(**given)
