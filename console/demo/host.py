"""The practice droplet's machine: processor, memory, disk and network, as the files of /proc that tell of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CORES = 20
MEMORY = 240 << 30
_TICKS = 100
"""Clock ticks a second, as on every Linux (sysconf SC_CLK_TCK)."""
_SECTOR = 512
_RX_EACH, _TX_EACH = 180_000.0, 6_000.0
"""Bytes of a request, in and out."""
_WEIGHTS_READ = 1.6e9
"""Bytes a second from the disk while models load."""


@dataclass(slots=True)
class Host:
    """The counters, cumulative; seconds and bytes."""

    booted: float
    user: float = 91_000.0
    system: float = 12_000.0
    iowait: float = 800.0
    steal: float = 300.0
    idle: float = 2.4e6
    read: float = 8.1e11
    written: float = 9.4e10
    received: float = 3.3e12
    sent: float = 2.2e11
    load1: float = 1.5
    used: float = 41.0 * (1 << 30)

    def advance(self, seconds: float, *, requests: float, load: float, loading: bool) -> None:
        """Go on for a while.

        Args:
            seconds: How long.
            requests: That arrived meanwhile.
            load: Of the peak's traffic, 0 to 1: pre- and postprocessing.
            loading: Models are being read from the disk.
        """
        busy = min(0.04 + 0.68 * load + (0.12 if loading else 0.0), 0.97)
        waits = 0.06 if loading else 0.002
        total = CORES * seconds
        self.user += total * busy * 0.82
        self.system += total * busy * 0.18
        self.iowait += total * waits
        self.steal += total * 0.004
        self.idle += max(total * (1 - busy - waits - 0.004), 0.0)
        self.load1 += (CORES * busy * 1.05 - self.load1) * min(seconds / 20, 1.0)
        self.received += requests * _RX_EACH + seconds * 20_000
        self.sent += requests * _TX_EACH + seconds * 12_000
        self.read += seconds * (_WEIGHTS_READ if loading else 40_000)
        self.written += seconds * (250_000 + 900_000 * load)
        self.used += ((41 + 34 * load) * (1 << 30) - self.used) * min(seconds / 8, 1.0)

    def files(self, uptime: float) -> dict[str, str]:
        """/proc's files by their paths.

        Args:
            uptime: Seconds since boot.
        """
        words = [self.user, 0.0, self.system, self.idle, self.iowait, 0.0, 0.0, self.steal]
        ticks = " ".join(str(int(word * _TICKS)) for word in words)
        each = " ".join(str(int(word * _TICKS / CORES)) for word in words)
        cores = "".join(f"cpu{core} {each} 0 0\n" for core in range(CORES))
        available = MEMORY - int(self.used)
        disk = [0] * 11
        disk[2], disk[6] = int(self.read / _SECTOR), int(self.written / _SECTOR)
        return {
            "/proc/stat": f"cpu  {ticks} 0 0\n{cores}btime {int(self.booted)}\n",
            "/proc/loadavg": f"{self.load1:.2f} {self.load1:.2f} {self.load1:.2f} 2/812 4242\n",
            "/proc/uptime": f"{uptime:.2f} {self.idle:.2f}\n",
            "/proc/meminfo": _meminfo(available),
            "/proc/diskstats": f" 253 0 vda {' '.join(map(str, disk))}\n",
            "/proc/net/dev": _net_dev(int(self.received), int(self.sent)),
        }


def _meminfo(available: int) -> str:
    rows: dict[str, Any] = {
        "MemTotal": MEMORY,
        "MemFree": available // 2,
        "MemAvailable": available,
        "SwapTotal": 0,
        "SwapFree": 0,
    }
    return "".join(f"{key + ':':<16}{value // 1024:>12} kB\n" for key, value in rows.items())


def _net_dev(received: int, sent: int) -> str:
    head = "Inter-|   Receive                |  Transmit\n face |bytes packets errs drop      |bytes packets\n"
    lo = "    lo: 81234 400 0 0 0 0 0 0 81234 400 0 0 0 0 0 0\n"
    return f"{head}{lo}  eth0: {received} {received // 1400} 0 0 0 0 0 0 {sent} {sent // 900} 0 0 0 0 0 0\n"
