"""A TCP proxy before a droplet's sshd: a line that is long, silent, or broken.

with Proxy((machine.address, 22), delay=0.05) as line:   # 100 ms there and back
    line.stall()
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Traffic:
    """What went over the line so far.

    Attributes:
        connections: How many were taken since the start.
        open: How many are open.
        up: Bytes handed to the target.
        down: Bytes handed back.
    """

    connections: int
    open: int
    up: int
    down: int


class Proxy:
    """A listening port on loopback that leads to ``target``. All methods return once the line does as told.

    Attributes:
        address: Where to connect: an address of loopback.
        port: And the port.
    """

    def __init__(self, target: tuple[str, int], *, delay: float = 0.0, listen: str = "127.0.0.1") -> None:
        """Start it.

        Args:
            target: Address and port that it leads to.
            delay: Seconds that everything takes in each direction; setting up a connection costs its one and a
                half round trips as well. Throughput is not limited by it.
            listen: The address to listen on.
        """
        script = Path(__file__).with_name("proxy_process.py")
        command = [sys.executable, "-I", "-S", str(script), listen, target[0], str(target[1]), str(delay)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._lock = threading.Lock()
        self.address = listen
        self.port: int = self._answer()["port"]

    def stall(self) -> None:
        """Move nothing: what is open stays open, what is new is taken, no byte gets through."""
        self._do("stall")

    def resume(self) -> None:
        """Move again; nothing was lost."""
        self._do("resume")

    def cut(self) -> None:
        """Reset every connection, and refuse new ones until ``mend``."""
        self._do("cut")

    def mend(self) -> None:
        """Take connections again."""
        self._do("mend")

    def set_delay(self, seconds: float) -> None:
        """Change the delay in each direction for what comes from now on."""
        self._do("delay", seconds=seconds)

    def traffic(self) -> Traffic:
        """The figures so far."""
        return self._do("count")

    def _do(self, what: str, **more: float) -> Traffic:
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"do": what, **more}).encode() + b"\n")
            self._process.stdin.flush()
            return Traffic(**self._answer())

    def _answer(self) -> dict[str, int]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the lab's proxy ended with exit status {self._process.wait()}")
        answer: dict[str, int] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it and every connection through it. Calling it again does nothing."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
            self._process.wait(5)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
