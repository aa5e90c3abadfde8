"""The telemetry stream of a lab droplet, run as the launcher runs it, without the way through the console."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from remote_scripts.patch import merge
from tests.lab.machine import Machine

SCRIPTS = Path(__file__).parents[2] / "remote_scripts"
FOLDER = "/opt/telemetry"
START = (
    f"import sys; sys.path.insert(0, {FOLDER!r}); from remote_scripts import launch; import json;"
    "launch.main(json.loads(sys.stdin.buffer.readline()), cached=True)"
)


class LabStream:
    """The stream of one droplet, followed by a thread.

    Attributes:
        ticks: by arrival, each with the whole document.
    """

    def __init__(self, machine: Machine, *, user: str = "", **request: Any) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for file in sorted(SCRIPTS.rglob("*.py")):
                archive.add(file, f"remote_scripts/{file.relative_to(SCRIPTS)}")
        machine.run(["mkdir", "-p", FOLDER])
        machine.run(["tar", "-x", "-C", FOLDER], packed.getvalue())
        self.ticks: list[dict[str, Any]] = []
        name = f"{machine.name}-{user}" if user else machine.name
        self._process = subprocess.Popen(
            ["ssh", "-F", str(machine.ssh_config), name, f"exec python3 -I -S -c {shlex.quote(START)}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        call = {"script": "telemetry", "compress": False, "request": {"interval": 0.5, **request}}
        self._process.stdin.write(json.dumps(call).encode() + b"\n")
        self._process.stdin.flush()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def until(self, wanted: Callable[[dict[str, Any]], object], seconds: float = 20.0) -> dict[str, Any]:
        """The first document from now on for which ``wanted`` is true."""
        position = max(len(self.ticks) - 1, 0)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            while position < len(self.ticks):
                document: dict[str, Any] = self.ticks[position]
                if wanted(document):
                    return document
                position += 1
            time.sleep(0.02)
        told = (
            {name: {**server, "models": ...} for name, server in self.ticks[-1]["servers"].items()}
            if self.ticks
            else {}
        )
        raise AssertionError(f"did not happen within {seconds:g} s; last seen: {told}")

    def state(self, name: str, state: str, seconds: float = 20.0) -> dict[str, Any]:
        """The server's branch, once it is in that state."""
        document = self.until(lambda found: found["servers"].get(name, {}).get("state") == state, seconds)
        branch: dict[str, Any] = document["servers"][name]
        return branch

    def _read(self) -> None:
        assert self._process.stdout is not None
        document: dict[str, Any] = {}
        for raw in self._process.stdout:
            if raw.startswith(b"{"):
                line = json.loads(raw)
                assert "error" not in line, line
                document = line["doc"] if line["full"] else merge(document, line["doc"])
                self.ticks.append(document)

    def __enter__(self) -> LabStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        finally:
            self._process.kill()
            self._reader.join(5)
