"""What a part of ``facts`` is given: the call, and a place for the reasons of what it could not read."""

from __future__ import annotations

import json
from collections.abc import Sequence

from remote_scripts.call import Call
from remote_scripts.children import Finished
from remote_scripts.files import cut, read_text


class NotThere(Exception):  # noqa: N818 - it is what is the case, not an error of ours
    """A part is not to be had; the text is the reason that a person reads after "n/a, because"."""


class Part:
    """One part of the document while it is read.

    Attributes:
        name: Its key in the document.
        unavailable: JSON Pointer to reason.
        finished: False while it is still being read.
    """

    def __init__(self, call: Call, name: str) -> None:
        self.call = call
        self.name = name
        self.unavailable: dict[str, str] = {}
        self.finished = False

    def miss(self, place: str, reason: str) -> None:
        """Note why something is left out; ``place`` is its pointer within the part, "" for the part itself."""
        self.unavailable[f"/{self.name}{place}"] = cut(reason)

    def text(self, file: str, limit: int = 1 << 16) -> str:
        """The start of one of the droplet's files.

        Raises:
            OSError: It cannot be read.
        """
        return read_text(str(self.call.resolve(file)), limit)

    def text_or(self, file: str, otherwise: str, limit: int = 1 << 16) -> str:
        """As ``text``, and ``otherwise`` where it cannot be read."""
        try:
            return self.text(file, limit)
        except OSError:
            return otherwise

    def exists(self, file: str) -> bool:
        """Whether one of the droplet's files is there."""
        return self.call.resolve(file).exists()

    def names(self, folder: str, limit: int = 4096) -> list[str]:
        """The names in one of the droplet's folders, sorted; none where it cannot be listed."""
        try:
            found = sorted(entry.name for entry in self.call.resolve(folder).iterdir())
        except OSError:
            return []
        return found[:limit]

    def tool(self, command: Sequence[str], timeout: float, limit: int = 1 << 18) -> Finished:
        """Run a tool.

        Raises:
            NotThere: It is not installed, or took too long.
        """
        try:
            done = self.call.run(command, timeout, limit=limit)
        except FileNotFoundError:
            raise NotThere(f"{command[0]} is not installed") from None
        except OSError as error:
            raise NotThere(f"{command[0]} cannot be run: {error.strerror}") from None
        if done.timed_out:
            raise NotThere(f"{command[0]} did not answer within {timeout:g} s")
        return done

    def output(self, command: Sequence[str], timeout: float, limit: int = 1 << 18) -> str:
        """What a tool prints where it succeeds.

        Raises:
            NotThere: It failed; the reason is the first line of its complaint.
        """
        done = self.tool(command, timeout, limit)
        if not done.ok:
            raise NotThere(f"{command[0]}: {complaint(done)}")
        return done.text


def complaint(done: Finished) -> str:
    """The first line that a failed tool said, or its exit status."""
    said = done.stderr.decode("utf-8", "replace").strip() or done.text.strip()
    return cut(said.splitlines()[0]) if said else f"exit status {done.status}"


def explain(error: BaseException) -> str:
    """The reason that a person reads after "n/a, because"."""
    if isinstance(error, NotThere):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be read: {error.strerror}"
    return f"{type(error).__name__}: {error}"


def mapping(text: str) -> dict[str, object]:
    """A JSON object.

    Raises:
        ValueError: It is something else.
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def assignments(text: str) -> dict[str, str]:
    """``KEY=value`` lines as in /etc/os-release and /etc/default files; quotes taken off, comments left out."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith("#"):
            value = value.strip()
            if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
                value = value[1:-1]
            found[key.strip()] = cut(value)
    return found
