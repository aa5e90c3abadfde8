"""`droplet-console [TARGET...]` and `droplet-console demo`: which droplets, then the screens."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from console.cli import context
from console.cli.exits import UsageError
from console.cli.front import Front, Wishes
from console.cli.options import Options
from console.settings.schema import COMMANDS, Droplet, Settings

_NOBODY = """no droplet is named, and the settings list none. Name one:
  droplet-console user@host        any name that ssh takes
  droplet-console local            this machine
  droplet-console demo             an embedded practice droplet
or list yours in config.yaml (see config.example.yaml), where --config, $DROPLET_CONSOLE_CONFIG or the config folder
has it"""


def run(
    words: Sequence[str],
    options: Options,
    front: Front | None,
    *,
    theme: str | None = None,
    plain: bool = False,
) -> int:
    """Show the droplets that were named, or all of the settings'.

    Args:
        words: The targets.
        options: The shared flags.
        front: Opens the screens.
        theme: The palette that was asked for.
        plain: ASCII signs were asked for.

    Raises:
        UsageError: None is named, one means nothing, or there is no terminal.
    """
    settings = context.read_settings(options)
    droplets = _droplets(settings, words)
    if not droplets:
        raise UsageError(_NOBODY)
    return _terminal(front).console(droplets, settings, Wishes(options.read_only, theme, plain))


def run_demo(options: Options, front: Front | None, *, theme: str | None, plain: bool) -> int:
    """Show the practice droplet; see ``run``."""
    return _terminal(front).demo(Wishes(options.read_only, theme, plain))


def misspelt(words: Sequence[str]) -> str | None:
    """What to say where the first word is most likely a misspelt command; None where it is not."""
    import difflib

    close = difflib.get_close_matches(words[0], COMMANDS, n=1, cutoff=0.75) if words else []
    if not close:
        return None
    return (
        f"no command {words[0]!a}; did you mean {close[0]}? "
        f"(for a droplet of that name: list it in the settings, or write user@{words[0]})"
    )


def _droplets(settings: Settings, words: Sequence[str]) -> tuple[Droplet, ...]:
    if words and settings.droplet(words[0]) is None:
        mistake = misspelt(words)
        if mistake is not None:
            raise UsageError(mistake)
    named = list(words) or [droplet.name for droplet in settings.droplets]
    return context.choose_droplets(settings, named, None)


def _terminal(front: Front | None) -> Front:
    if front is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the console needs a terminal; for figures without one: `droplet-console status TARGET`")
    return front
