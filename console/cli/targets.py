"""From the words on the command line to droplets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from console.cli.exits import UsageError
from console.settings import secrets
from console.settings.nodes import nearest
from console.settings.schema import Droplet, Settings

_ADDRESS = re.compile(
    r"(?:(?P<user>[^\s@:/-][^\s@:/]*)@)?(?:\[(?P<v6>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^\s@/\[\]-][^\s@/\[\]]*?))"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


def choose(settings: Settings, words: Sequence[str]) -> tuple[Droplet, ...]:
    """The droplets that the words mean, each once, in the order they were named.

    A word is a name from the settings, ``@group`` or ``@tag``, or anything ssh would take: ``user@host:port``, a
    Host of ssh_config, ``local``.

    Raises:
        UsageError: A word means nothing.
    """
    chosen: dict[str, Droplet] = {}
    for word in words:
        for droplet in _selected(settings, word) if word.startswith("@") else (_one(settings, word),):
            chosen.setdefault(droplet.name, droplet)
    return tuple(chosen.values())


def shown(word: str) -> str:
    """A word for a message; not one that may hold a password."""
    return "..." if secrets.hidden(word) else ascii(word)


def _selected(settings: Settings, word: str) -> tuple[Droplet, ...]:
    label = word[1:]
    found = tuple(droplet for droplet in settings.droplets if label == droplet.group or label in droplet.tags)
    if found:
        return found
    labels = {label for droplet in settings.droplets for label in (droplet.group, *droplet.tags) if label}
    if not labels:
        raise UsageError(
            f"no droplet is in group {label!a} or has that tag: the settings know no groups and no tags"
        )
    raise UsageError(f"no droplet is in group {label!a} or has that tag; {nearest(label, labels)}")


def _one(settings: Settings, word: str) -> Droplet:
    known = settings.droplet(word)
    if known is not None:
        return known
    address = _ADDRESS.fullmatch(word) if word.isprintable() else None
    if address is None:
        if secrets.hidden(word):
            raise UsageError(
                "a password does not belong on the command line: give user@host:port, and it is asked for"
            )
        raise UsageError(f"{word!a} is no droplet: give a name from the settings, user@host:port, or local")
    bare_v6 = word.count(":") > 1 and address["v6"] is None
    if bare_v6:
        user, _, host = word.rpartition("@")
        return Droplet(name=word, host=host, user=user or None)
    port = None if address["port"] is None else int(address["port"])
    if port is not None and not 1 <= port <= 65535:
        raise UsageError(f"{word!a}: {port} is no port; ports are 1 to 65535")
    return Droplet(name=word, host=address["v6"] or address["host"], user=address["user"], port=port)
