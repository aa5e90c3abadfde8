"""A droplet for benchmarks: the lab's, with GPUs, a Triton, and settings that name it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab import nvml
from tests.lab.machine import Machine
from tests.lab.nvml.scenario import Scenario
from tests.lab.triton import repository
from tests.lab.triton.options import Options
from tests.lab.triton.unit import TritonUnit, install


@dataclass(frozen=True, slots=True)
class Bench:
    """What a benchmark works with."""

    machine: Machine
    triton: TritonUnit
    folder: Path

    def settings(self, at: dict[str, tuple[str, int]]) -> dict[str, str]:
        """Write settings for droplets that all are this machine; the environment that uses them.

        Args:
            at: For each droplet's name, address and port: each its own, since logins to one are rationed.
        """
        entries = [
            f"  {name}:\n    host: {host}\n    port: {port}\n    user: root\n    identity: {self.machine.key()}\n"
            for name, (host, port) in at.items()
        ]
        state = self.folder / "state"
        state.mkdir(exist_ok=True)
        known = [self.machine.known_hosts_for(host, port) for host, port in at.values()]
        (state / "known_hosts").write_text("".join(known))
        config = self.folder / "config.yaml"
        config.write_text("droplets:\n" + "".join(entries))
        return {**os.environ, "DROPLET_CONSOLE_CONFIG": str(config), "DROPLET_CONSOLE_STATE": str(state)}

    def forget_scripts(self) -> None:
        """Make the next contact the first."""
        self.machine.run(["rm", "-rf", "/var/lib/droplet-console"])


@contextmanager
def droplet(folder: Path, gpus: Scenario, models: int, sshd: tuple[str, ...] = ()) -> Iterator[Bench]:
    """A bookworm droplet with these GPUs and a Triton that serves this many batching models."""
    with Machine("bookworm", sshd=sshd) as machine:
        nvml.install(machine, gpus)
        options = Options(
            load=tuple(f"echo_{number:02}" for number in range(models)), extra=("--allow-gpu-metrics=false",)
        )
        triton = install(machine, options, models=())
        repository.add_copies(triton.models, "echo", models)
        triton.start()
        yield Bench(machine, triton, folder)


def cpu_seconds(pid: int, children: bool = False) -> float:
    """Processor time of a process so far, from /proc/PID/stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12]) + (int(fields[13]) + int(fields[14]) if children else 0)
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Resident memory of a process, from /proc/PID/smaps_rollup."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/{pid}/smaps_rollup says nothing of Rss")


def console(*arguments: str) -> list[str]:
    """The command line of this product."""
    return [sys.executable, "-m", "console", *arguments]


def until(deadline_s: float, what: str) -> Iterator[None]:
    """Poll: yields every 20 ms; TimeoutError after the deadline."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        yield
        time.sleep(0.02)
    raise TimeoutError(what)
