"""A collector over the lab's NVML stub, for the tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.nvml import SCENARIO, Scenario

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Tick:
    doc: dict[str, Any]
    unavailable: dict[str, str]
    took: float

    @property
    def gpus(self) -> dict[str, Any]:
        found: dict[str, Any] = self.doc["gpus"]
        return found

    @property
    def gpu(self) -> dict[str, Any]:
        """The only GPU."""
        (found,) = self.gpus.values()
        return dict(found)

    def reason(self, key: str, uuid: str | None = None) -> str:
        return self.unavailable[f"/gpus/{uuid or next(iter(self.gpus))}/{key}"]


class Collector:
    """The probe's process, and the folder that its library and scenario lie in."""

    def __init__(
        self,
        folder: Path,
        scenario: Scenario | None,
        *,
        root: Path = Path("/"),
        path: Sequence[str] = (),
        library_path: Path | None = None,
        **options: object,
    ) -> None:
        self.folder = folder
        if scenario is not None:
            self.set(scenario)
        if root != Path("/"):
            # Under a root of its own a droplet has the library that lies there, not this machine's.
            library = (library_path or folder) / "libnvidia-ml.so.1"
            (root / "usr/lib64").mkdir(parents=True, exist_ok=True)
            if library.exists():
                shutil.copyfile(library, root / "usr/lib64/libnvidia-ml.so.1")
        self._now = 1000.0
        tools = [*path, "/usr/bin", "/bin"]
        environment = {**os.environ, "LD_LIBRARY_PATH": str(library_path or folder)}
        environment["LAB_NVML_SCENARIO"] = str(folder / SCENARIO)
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.remote_scripts.gpu_probe",
                json.dumps({"root": str(root), "path": tools, **options}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=REPOSITORY,
            text=True,
        )

    def set(self, scenario: Scenario) -> None:
        scenario.write(self.folder / SCENARIO)

    def tick(
        self, *, slow: bool = False, after: float = 1.0, servers: Mapping[int, str] | None = None, wait: float = 0.0
    ) -> Tick:
        """One tick, ``after`` seconds of its clock and ``wait`` real ones after the last."""
        time.sleep(wait)
        self._now += after
        answer = self._ask({"slow": slow, "now": self._now, "servers": dict(servers or {})})
        return Tick(answer["doc"], answer["unavailable"], answer["took"])

    def repeat(self, times: int) -> dict[str, float]:
        return self._ask({"repeat": times})

    def close(self) -> int:
        """Ends the input; the probe's exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            return self._process.wait(10)
        finally:
            self._process.kill()
            self._process.stdout.close()

    def _ask(self, tick: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(tick) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer
