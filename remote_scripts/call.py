"""What a remote script is given: its request, the droplet's files and tools, and a way to answer.

A script module has one entry, ``def main(call: Call) -> None``. It raises what goes wrong: the launcher turns an
exception into the error line of docs/wire.md. Only the standard library is imported here, and little of it: this
runs at every start on the droplet.
"""

from __future__ import annotations

import json
import os
import posixpath
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from remote_scripts import children
from remote_scripts.children import Finished

MAX_LINE = 4 << 20
"""Bytes of one output line, the newline included (docs/wire.md 3)."""

DEFAULT_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


class Sink(Protocol):
    """Where the output lines go: bytes in, sent on at once by ``flush``."""

    def write(self, data: bytes, /) -> object:
        """Take these bytes."""

    def flush(self) -> object:
        """Send what was taken."""


class LineTooLong(ValueError):  # noqa: N818 - it is what happened
    """An answer does not fit in one line; nothing of it was sent."""


@dataclass(frozen=True, slots=True)
class Call:
    """One run of a remote script.

    Attributes:
        request: What this side asked for; its keys are the script's own (docs/wire.md).
        root: The folder under which all files are looked up; ``/`` on a droplet, another in tests.
        path: The folders in which tools are looked up, absolute, in order.
    """

    request: Mapping[str, Any]
    sink: Sink = field(repr=False)
    root: Path = Path("/")
    path: Sequence[str] = DEFAULT_PATH
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def emit(self, answer: object) -> int:
        """Send one answer as one line of JSON, at once. May be called from any thread.

        Returns:
            The line's length in bytes, the newline included, before compression.

        Raises:
            LineTooLong: Over 4 MiB.
            ValueError: The answer holds NaN or an infinity, which JSON has not.
            BrokenPipeError: Nobody listens any more.
        """
        line = json.dumps(answer, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
        if len(line) > MAX_LINE:
            raise LineTooLong(f"an answer of {len(line)} bytes does not fit in a line of {MAX_LINE}")
        with self._lock:
            self.sink.write(line)
            self.sink.flush()
        return len(line)

    def resolve(self, file: str) -> Path:
        """Where an absolute path of the droplet lies under ``root``; ``..`` does not lead out of it."""
        inside = posixpath.normpath("/" + file).lstrip("/")
        return self.root / inside

    def tool(self, name: str) -> str | None:
        """The absolute path of a program found in ``path`` by its plain name; None where there is none."""
        if "/" in name:
            raise ValueError(f"a tool is asked for by its plain name, not as {name!r}")
        places = (Path(folder, name) for folder in self.path if folder.startswith("/"))
        return next((str(place) for place in places if place.is_file() and os.access(place, os.X_OK)), None)

    def run(
        self,
        command: Sequence[str],
        timeout: float,
        input: bytes = b"",  # noqa: A002 - as subprocess has it
        *,
        limit: int = 1 << 20,
        env: Mapping[str, str] | None = None,
    ) -> Finished:
        """Run a tool to its end, in a session of its own, with ``LC_ALL=C`` and ``path`` as its PATH.

        When the time is up it is killed with its whole group; so it is when this script ends.

        Args:
            command: The argument list. A plain name is looked up in ``path``.
            timeout: Seconds.
            input: Its standard input.
            limit: Bytes to keep of each output; the rest is read and dropped.
            env: Variables to add.

        Raises:
            FileNotFoundError: No such tool.
        """
        program = command[0] if "/" in command[0] else self.tool(command[0])
        if program is None:
            raise FileNotFoundError(f"{command[0]}: not found in {os.pathsep.join(self.path)}")
        variables = {**os.environ, "LC_ALL": "C", "PATH": os.pathsep.join(self.path), **(env or {})}
        return children.run([program, *command[1:]], timeout, input, limit=limit, env=variables)
