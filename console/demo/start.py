"""Starting the practice droplet, and what the console needs to reach it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from console.demo import folders
from console.settings.schema import Droplet, Practice, Sudo

NAME = "demo"
_STARTS_WITHIN = 30.0
_ENDS_WITHIN = 5.0


class DemoError(Exception):
    """The practice droplet did not start; the text says why."""


class DemoDroplet:
    """A running practice droplet. Use it as a context manager: it ends, and its folder goes, on leaving.

    Attributes:
        droplet: For whatever takes a droplet of the settings.
        folder: Everything that it is.
    """

    def __init__(self, process: subprocess.Popen[bytes], told: dict[str, Any]) -> None:
        self._process = process
        self.folder = Path(told["folder"])
        practice = Practice(told["ssh_config"], told["root"], tuple(told["path"]))
        self.droplet = Droplet(name=NAME, sudo=Sudo.NEVER, tags=("simulated",), practice=practice)

    @property
    def pid(self) -> int:
        """Of the demo's process."""
        return self._process.pid

    def close(self) -> None:
        """End it. Calling it again does nothing."""
        _end(self._process)
        if self.folder.name.startswith(folders.PREFIX):
            shutil.rmtree(self.folder, ignore_errors=True)  # it was killed, and could not do so itself

    def __enter__(self) -> DemoDroplet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def start_demo(*, stand_in: bool = False) -> DemoDroplet:
    """Start the demo's process and wait until it can be reached: about a second.

    Args:
        stand_in: Use the stand-in for Triton even where a real one is installed (``console.demo.wheel``).

    Raises:
        DemoError: It did not start.
    """
    package = str(Path(__file__).parents[2])
    python_path = os.pathsep.join(part for part in (package, os.environ.get("PYTHONPATH")) if part)
    complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, and with the process
    process = subprocess.Popen(
        [sys.executable, "-m", "console.demo.process", *(["--stand-in"] if stand_in else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        env={**os.environ, "PYTHONPATH": python_path},
        start_new_session=True,  # ctrl-c and a closed terminal are the console's to answer
    )
    with complaints:
        try:
            return DemoDroplet(process, _first_line(process))
        except BaseException as error:
            _end(process)
            complaints.seek(0)
            said = complaints.read()[-2000:].decode("utf-8", "replace").strip()
            if isinstance(error, (TimeoutError, ValueError, KeyError)):
                raise DemoError(f"the practice droplet did not start: {said or error}") from error
            raise


def _first_line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    deadline = time.monotonic() + _STARTS_WITHIN
    line = b""
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise TimeoutError(f"it said nothing within {_STARTS_WITHIN:g} s")
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            raise ValueError("it ended at once")
        line += data
    told: dict[str, Any] = json.loads(line)
    return told


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
