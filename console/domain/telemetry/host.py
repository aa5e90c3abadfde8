"""The document's ``host``: the machine's own figures, and their rates."""

from __future__ import annotations

from typing import Any

from console.domain.telemetry.merge import Document
from console.domain.telemetry.rates import NOT_BEFORE, Window, rate
from console.domain.telemetry.reasons import UNTOLD, Reasons
from console.domain.telemetry.sample import CpuSample, HostSample

_TIMES = ("user", "system", "iowait", "steal", "idle")
_NOTHING: Document = {}
_WENT_BACK = "reset: the counter went back"
_MORE_THAN_ALL = "the droplet says more than there is in all, which cannot be right"
_STOOD = "the kernel's processor times went back or stood still"
_CPU_SOURCES = {"busy_percent": "user", "iowait_percent": "iowait", "steal_percent": "steal"}
_SOURCES = {
    "uptime_s": "booted",
    "memory_total": "memory/total",
    "memory_available": "memory/available",
    "swap_total": "memory/swap_total",
    "swap_used": "memory/swap_used",
    "disk_total": "disk/total",
    "disk_free": "disk/free",
    "disk_read_bytes": "io/read",
    "disk_write_bytes": "io/write",
    "disk_read_rate": "io/read",
    "disk_write_rate": "io/write",
    "net_rx_bytes": "net/rx",
    "net_tx_bytes": "net/tx",
    "net_rx_rate": "net/rx",
    "net_tx_rate": "net/tx",
}
_RATES = {
    "disk_read_rate": ("io", "read"),
    "disk_write_rate": ("io", "write"),
    "net_rx_rate": ("net", "rx"),
    "net_tx_rate": ("net", "tx"),
}


def host(now: Document, before: Document, mono: float, window: Window, reasons: Reasons) -> HostSample:
    """The host's part of a sample.

    Args:
        now: The document's ``host`` of this tick.
        before: The same of the tick that ``window`` begins with.
        mono: CLOCK_BOOTTIME of this tick in seconds, which is how long the machine has been up: unlike the
            wall clock minus the moment of the boot, it does not move when the clock is set.
        window: The time between the two.
        reasons: Takes the reasons of what is not there.
    """
    memory, disk = now.get("memory", _NOTHING), now.get("disk", _NOTHING)
    io, net = now.get("io", _NOTHING), now.get("net", _NOTHING)
    own: dict[str, str] = {}
    rates: dict[str, float | None] = {}
    for name, (branch, counter) in _RATES.items():
        rates[name] = _rate(name, now.get(branch, _NOTHING), before.get(branch, _NOTHING), counter, window, own)
    sample = HostSample(
        hostname=now.get("hostname"),
        boot_id=now.get("boot_id"),
        uptime_s=mono,
        cpu=_cpu(now, before, window, reasons),
        memory_total=memory.get("total"),
        memory_available=_part(memory, "available", "total", "memory_available", own),
        swap_total=memory.get("swap_total"),
        swap_used=_part(memory, "swap_used", "swap_total", "swap_used", own),
        disk_total=disk.get("total"),
        disk_free=_part(disk, "free", "total", "disk_free", own),
        disk_read_bytes=io.get("read"),
        disk_write_bytes=io.get("write"),
        net_rx_bytes=net.get("rx"),
        net_tx_bytes=net.get("tx"),
        **rates,
    )
    reasons.explain(sample, "/host", "/host", _SOURCES, own)
    return sample


def _part(branch: Document, part: str, whole: str, name: str, own: dict[str, str]) -> int | None:
    """A part of a whole; what is larger than that would make a negative rest."""
    value: int | None = branch.get(part)
    if value is not None and whole in branch and value > branch[whole]:
        own[name] = _MORE_THAN_ALL
        return None
    return value


def _rate(
    name: str, now: Document, before: Document, counter: str, window: Window, own: dict[str, str]
) -> float | None:
    if counter not in now:
        return None
    if window.gap is not None:
        own[name] = window.gap
        return None
    if counter not in before:
        own[name] = NOT_BEFORE
        return None
    value = rate(now[counter], before[counter], window.seconds)
    if value is None:
        own[name] = _WENT_BACK
    return value


def _cpu(now: Document, before: Document, window: Window, reasons: Reasons) -> CpuSample:
    """Shares of the processor time that passed.

    The kernel's idle and iowait may go back by a little (proc(5)); then the sum of all is not known and neither
    are the shares.
    """
    times, earlier = now.get("cpu", _NOTHING), before.get("cpu", _NOTHING)
    own: dict[str, str] = {}
    shares: dict[str, Any] = {}
    names = ("busy_percent", "iowait_percent", "steal_percent")
    if all(name in times for name in _TIMES):
        spent = {name: times[name] - earlier.get(name, times[name]) for name in _TIMES}
        total = sum(spent.values())
        if window.gap is not None:
            own = dict.fromkeys(names, window.gap)
        elif not all(name in earlier for name in _TIMES):
            own = dict.fromkeys(names, NOT_BEFORE)
        elif total <= 0 or min(spent.values()) < 0:
            own = dict.fromkeys(names, _STOOD)
        else:
            shares["busy_percent"] = 100 * (spent["user"] + spent["system"]) / total
            shares["iowait_percent"] = 100 * spent["iowait"] / total
            shares["steal_percent"] = 100 * spent["steal"] / total
    cpu = CpuSample(cores=times.get("cores"), load1=now.get("load1"), **shares)
    if cpu.load1 is None:
        own["load1"] = reasons.of("/host", "load1") or UNTOLD
    reasons.explain(cpu, "/host/cpu", "/host/cpu", _CPU_SOURCES, own)
    return cpu
