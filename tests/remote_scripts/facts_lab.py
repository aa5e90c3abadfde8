"""A pretended droplet for `facts`: files under a root of its own, and tools that say what a test tells them to."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from remote_scripts.call import Call
from remote_scripts.facts_parts.facts_part import Part

DATA = Path(__file__).parents[1] / "data" / "facts"


class Sink:
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes, /) -> object:
        self.data += data
        return len(data)

    def flush(self) -> object:
        return None


class Pretended:
    """The droplet."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.tools = folder / "tools"
        self.sink = Sink()
        self.root.mkdir()
        self.tools.mkdir()
        for name in ("sh", "cat", "sleep"):
            (self.tools / name).symlink_to(f"/bin/{name}")

    @property
    def call(self) -> Call:
        return Call({}, self.sink, root=self.root, path=(str(self.tools),))

    def file(self, path: str, text: str | bytes) -> Path:
        made = self.root / path.lstrip("/")
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(text.encode() if isinstance(text, str) else text)
        return made

    def link(self, path: str, target: str) -> None:
        made = self.root / path.lstrip("/")
        made.parent.mkdir(parents=True, exist_ok=True)
        made.symlink_to(target)

    def tool(self, name: str, output: str = "", *, script: str | None = None, status: int = 0) -> None:
        """A program that prints ``output``, or runs a line of shell."""
        file = self.tools / name
        (self.tools / f"{name}.out").write_text(output, encoding="utf-8")
        line = script or f'cat "{self.tools / name}.out"; exit {status}'
        file.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def read(self, reader: Callable[[Part], Any], name: str = "part") -> tuple[Any, Mapping[str, str]]:
        """What a part's reader finds, and the reasons for the rest."""
        part = Part(self.call, name)
        return reader(part), part.unavailable

    def document(self) -> dict[str, Any]:
        """The last line that was sent."""
        found: dict[str, Any] = json.loads(self.sink.data.splitlines()[-1])
        return found
