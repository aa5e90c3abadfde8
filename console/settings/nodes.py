"""YAML as nodes with their places: reading values one by one, and collecting every mistake on the way."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import yaml

from console.settings.errors import Mistake, SettingsError
from console.settings.secrets import hidden, secret_key, secret_value

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a pyyaml without libyaml still reads, only slower
_TAG = "tag:yaml.org,2002:"
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_MAX_MERGES = 16
_MAX_NAMED = 20

Read = Callable[["Reader", yaml.Node, str], Any]
"""Reads one value: the node and its key path in, the value out; None after a mistake or where nothing stands."""


def compose(text: str, file: str) -> yaml.Node | None:
    """The document's root, or None for an empty one.

    Raises:
        SettingsError: The text is not one YAML document.
    """
    try:
        return yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        if mark and _character(text, mark.line, mark.column) == "\t":
            what = "a tab stands here; YAML indents with spaces"
        raise SettingsError([Mistake(file, line, column, "", f"not YAML: {what}")]) from None
    except (yaml.YAMLError, RecursionError) as error:
        first = str(error).partition("\n")[0]
        raise SettingsError([Mistake(file, None, None, "", f"not YAML: {first}")]) from None


def _character(text: str, line: int, column: int) -> str:
    """What stands at a mark, both counted from 0; nothing beyond the text."""
    return "".join(text.splitlines()[line : line + 1])[column : column + 1]


class Reader:
    """Reads nodes of one file and keeps what is wrong with them in ``mistakes``."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.mistakes: list[Mistake] = []

    def wrong(self, node: yaml.Node, path: str, message: str) -> None:
        """Note a mistake at a node."""
        mark = node.start_mark
        self.mistakes.append(Mistake(self.file, mark.line + 1, mark.column + 1, path, message))

    def entries(self, node: yaml.Node, path: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """A mapping's keys, each with its key node and value node; merges (``<<``) resolved, duplicates noted."""
        if is_nothing(node):
            return {}
        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, path, f"must be keys with values, not {describe(node)}")
            return {}
        found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if key.tag == _TAG + "merge":
                merged.extend(value.value if isinstance(value, yaml.SequenceNode) else [value])
            elif not isinstance(key, yaml.ScalarNode):
                self.wrong(key, path, "a key must be a word")
            elif key.value in found:
                first = found[key.value][0].start_mark
                self.wrong(key, join(path, key.value), f"stands here twice; the first is in line {first.line + 1}")
            else:
                found[key.value] = (key, value)
        for other in merged[:_MAX_MERGES]:
            if isinstance(other, yaml.MappingNode):
                for key, value in other.value:
                    if isinstance(key, yaml.ScalarNode) and key.tag != _TAG + "merge":
                        found.setdefault(key.value, (key, value))
            else:
                self.wrong(other, path, "only keys with values can be merged with <<")
        return found

    def section(self, node: yaml.Node, path: str, keys: Mapping[str, Read]) -> dict[str, Any]:
        """Read a mapping whose keys are known.

        Returns:
            The value of each key that stands there, is right, and is not empty.
        """
        values: dict[str, Any] = {}
        for key, (key_node, value_node) in self.entries(node, path).items():
            where = join(path, key)
            if key in keys:
                value = None if is_nothing(value_node) else keys[key](self, value_node, where)
                if value is not None:
                    values[key] = value
            elif place := secret_key(key):
                self.wrong(key_node, where, f"secrets are not kept in the settings: {place}")
            else:
                self.wrong(key_node, where, f"no such key; {nearest(key, keys)}")
        return values

    def scalar(self, node: yaml.Node, path: str, wanted: str) -> str | None:
        """The text of a single value; a secret is refused."""
        if not isinstance(node, yaml.ScalarNode):
            self.wrong(node, path, f"must be {wanted}, not {describe(node)}")
            return None
        value = str(node.value)
        if secret := secret_value(value):
            self.wrong(
                node, path, f"this looks like {secret[0]}, and secrets are not kept in the settings: {secret[1]}"
            )
            return None
        return value


def text(pattern: str, wanted: str) -> Read:
    """A text that matches ``pattern`` as a whole and holds nothing that cannot be seen."""
    compiled = re.compile(pattern)

    def read(reader: Reader, node: yaml.Node, path: str) -> str | None:
        value = reader.scalar(node, path, wanted)
        if value is not None and not (compiled.fullmatch(value) and value.isprintable()):
            reader.wrong(node, path, f"must be {wanted}, not {quoted(value)}")
            return None
        return value

    return read


def texts(pattern: str, wanted: str) -> Read:
    """One text or a list of them; a tuple in either case."""
    one = text(pattern, wanted)

    def read(reader: Reader, node: yaml.Node, path: str) -> tuple[str, ...]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        values = [one(reader, item, path) for item in nodes]
        return tuple(dict.fromkeys(value for value in values if value is not None))

    return read


def number(low: float, high: float, unit: str = "") -> Read:
    """A number from ``low`` to ``high``."""
    wanted = f"a number from {low} to {high}{unit and ' ' + unit}"

    def read(reader: Reader, node: yaml.Node, path: str) -> float | None:
        value = reader.scalar(node, path, wanted)
        if value is None:
            return None
        try:
            figure = float(value)
        except ValueError:
            figure = math.nan
        if not low <= figure <= high:
            reader.wrong(node, path, f"must be {wanted}, not {quoted(value)}")
            return None
        return figure

    return read


def port(reader: Reader, node: yaml.Node, path: str) -> int | None:
    """A TCP port."""
    value = reader.scalar(node, path, "a port from 1 to 65535")
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]{1,5}", value) or not 1 <= int(value) <= 65535:
        reader.wrong(node, path, f"must be a port from 1 to 65535, not {quoted(value)}")
        return None
    return int(value)


def flag(reader: Reader, node: yaml.Node, path: str) -> bool | None:
    """True or false, in any of YAML's words for them."""
    value = reader.scalar(node, path, "true or false")
    if value is None:
        return None
    if value.lower() not in _FLAGS:
        reader.wrong(node, path, f"must be true or false, not {quoted(value)}")
        return None
    return _FLAGS[value.lower()]


def choice(words: Iterable[str]) -> Read:
    """One of some words."""
    allowed = tuple(words)

    def read(reader: Reader, node: yaml.Node, path: str) -> str | None:
        value = reader.scalar(node, path, f"one of {', '.join(allowed)}")
        if value is not None and value not in allowed:
            reader.wrong(node, path, f"{quoted(value)} is not possible; {nearest(value, allowed)}")
            return None
        return value

    return read


def nearest(word: str, words: Iterable[str]) -> str:
    """Which of ``words`` was probably meant, as a piece of a sentence."""
    known = sorted(words)
    close = difflib.get_close_matches(word.lower().replace("-", "_"), known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    more = f" and {len(known) - _MAX_NAMED} more" if len(known) > _MAX_NAMED else ""
    return f"possible are {', '.join(known[:_MAX_NAMED])}{more}"


def join(path: str, key: str) -> str:
    """The path of a key within a section, safe to print."""
    word = "..." if hidden(key) else key if key.isprintable() else ascii(key)
    return f"{path}.{word}" if path else word


def is_nothing(node: yaml.Node) -> bool:
    """True for an empty value or null."""
    return isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "null"


def describe(node: yaml.Node) -> str:
    """A node in a few words, for a message."""
    if isinstance(node, yaml.MappingNode):
        return "keys with values"
    return "a list" if isinstance(node, yaml.SequenceNode) else quoted(str(node.value))


def quoted(value: str) -> str:
    """A value for a message: short, and safe to print; not one that may hold a password."""
    if hidden(value):
        return "this (not repeated here: it may hold a password)"
    shown = value if len(value) <= 60 else value[:59] + "…"
    return repr(shown)
