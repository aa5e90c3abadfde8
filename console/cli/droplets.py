"""`droplets`: the inventory of the settings. Connects to nothing."""

from __future__ import annotations

from collections.abc import Sequence

from console.cli.exits import Exit, UsageError
from console.cli.options import Options
from console.cli.output import Output, standard
from console.cli.render.table import table
from console.cli.targets import choose, shown
from console.settings import paths
from console.settings.load import load
from console.settings.nodes import nearest
from console.settings.schema import Droplet, Settings

SCHEMA = "droplets/1"


def run(words: Sequence[str], options: Options, output: Output | None = None) -> Exit:
    """Print the inventory.

    Args:
        words: Names, ``@group`` or ``@tag``: only these; none for all.
        options: The shared flags.
        output: Where to; the process's own by default.
    """
    output = output or standard()
    place = paths.find(options.config)
    settings = load(place)
    for word in words:
        if not word.startswith("@") and settings.droplet(word) is None:
            names = [droplet.name for droplet in settings.droplets]
            known = nearest(word, names) if names else "it names none"
            raise UsageError(f"no droplet {shown(word)} in {place.path}; {known}")
    droplets = choose(settings, words) if words else settings.droplets
    if options.json:
        documents = [_document(droplet, settings) for droplet in droplets]
        output.document({"schema": SCHEMA, "file": settings.file, "droplets": documents})
        return Exit.DONE
    if not droplets:
        there = "names no droplets" if settings.file else "does not exist"
        output.tell(f"{place.path} {there}. `droplet-console status user@host` needs no settings.")
        return Exit.DONE
    heading = ("NAME", "TARGET", "GROUP", "TAGS", "PER HOUR", "")
    rows = [heading, *(_row(droplet) for droplet in droplets)]
    for number, line in enumerate(table(rows, "<<<<><", None)):
        colour = None if number == 0 else droplets[number - 1].colour
        output.line(output.paint(line, "bold" if number == 0 else None, colour))
    return Exit.DONE


def _row(droplet: Droplet) -> tuple[str, ...]:
    return (
        droplet.name,
        droplet.target,
        droplet.group or "-",
        ", ".join(droplet.tags) or "-",
        "-" if droplet.price_per_hour is None else f"{droplet.price_per_hour:.2f}",
        "PRODUCTION" if droplet.production else "",
    )


def _document(droplet: Droplet, settings: Settings) -> dict[str, object]:
    return {
        "name": droplet.name,
        "target": droplet.target,
        "host": droplet.host or droplet.name,
        "user": droplet.user,
        "port": droplet.port,
        "jump": droplet.jump,
        "sudo": droplet.sudo.value,
        "group": droplet.group,
        "tags": list(droplet.tags),
        "colour": droplet.colour,
        "production": droplet.production,
        "price_per_hour": droplet.price_per_hour,
        "interval": droplet.interval or settings.interval,
        "servers": [
            {"name": server.name, "http": server.http, "grpc": server.grpc, "metrics": server.metrics}
            for server in droplet.servers
        ],
    }
