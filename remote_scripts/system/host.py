"""The machine itself: processor, memory, disks and network, from /proc, /sys and statvfs.

Counters are cumulative and never step back while the stream lives: a disk or an interface that comes or goes
changes nothing that was counted before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from remote_scripts.call import Call
from remote_scripts.files import cut, read_bytes, read_text
from remote_scripts.system.devices import Devices, disk_devices, network_devices

SECTOR = 512
"""Bytes: /proc/diskstats counts in these whatever the disk's own sector size (kernel, iostats.rst)."""
BOOTED_SLACK = 2
"""Seconds: /proc/stat's btime is computed anew at each read and wavers by one."""
_IDENTITY = (("hostname", "/proc/sys/kernel/hostname"), ("boot_id", "/proc/sys/kernel/random/boot_id"))
_MEMORY = (b"MemTotal:", b"MemAvailable:", b"SwapTotal:", b"SwapFree:")


class HostCollector:
    """Reads the ``host`` branch of the document (docs/wire.md section 3)."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._stat = str(call.resolve("/proc/stat"))
        self._loadavg = str(call.resolve("/proc/loadavg"))
        self._meminfo = str(call.resolve("/proc/meminfo"))
        self._diskstats = str(call.resolve("/proc/diskstats"))
        self._net_dev = str(call.resolve("/proc/net/dev"))
        self._tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
        self._identity: dict[str, Any] = {}
        self._booted: int | None = None
        self._disk: dict[str, int] = {}
        self._disk_reason: str | None = None
        self._disks = Devices()
        self._interfaces = Devices()

    def read(self, doc: dict[str, Any], unavailable: dict[str, str], *, slow: bool) -> None:
        """Fills ``doc["host"]``; what cannot be read is left out with its reason. Never raises.

        Args:
            doc: the document of this tick.
            unavailable: JSON pointer to reason.
            slow: read also what changes slowly: the file system's fill, which devices there are.
        """
        if len(self._identity) < 2:
            self._read_identity(unavailable)
        host: dict[str, Any] = dict(self._identity)
        doc["host"] = host
        self._attempt(self._read_cpu, ("cpu", "booted"), host, unavailable)
        self._attempt(self._read_load, ("load1",), host, unavailable)
        self._attempt(self._read_memory, ("memory",), host, unavailable)
        self._read_disk(host, unavailable, slow or not (self._disk or self._disk_reason))
        self._read_io(host, unavailable, slow)
        self._read_net(host, unavailable, slow)

    def _attempt(
        self,
        part: Callable[[dict[str, Any]], None],
        keys: tuple[str, ...],
        host: dict[str, Any],
        unavailable: dict[str, str],
    ) -> None:
        try:
            part(host)
        except (OSError, ValueError, IndexError, KeyError) as error:
            reason = explain(error)
            unavailable.update({f"/host/{key}": reason for key in keys if key not in host})

    def _read_identity(self, unavailable: dict[str, str]) -> None:
        for key, path in _IDENTITY:
            try:
                self._identity[key] = cut(read_text(str(self._call.resolve(path)), 4096).strip())
            except OSError as error:
                unavailable[f"/host/{key}"] = explain(error)

    def _read_cpu(self, host: dict[str, Any]) -> None:
        data = read_bytes(self._stat, 1 << 20)
        total, _, _ = data.partition(b"\n")
        # user already holds guest, nice holds guest_nice (kernel, proc.rst).
        fields = [int(word) * self._tick_s for word in total.split()[1:9]]
        user, nice, system, idle, iowait, irq, softirq = fields[:7]
        host["cpu"] = {
            "cores": data.count(b"\ncpu"),
            "user": round(user + nice, 2),
            "system": round(system + irq + softirq, 2),
            "iowait": round(iowait, 2),
            "steal": round(fields[7], 2) if len(fields) > 7 else 0.0,
            "idle": round(idle, 2),
        }
        at = data.index(b"\nbtime ") + 7
        booted = int(data[at : data.index(b"\n", at)])
        if self._booted is None or abs(booted - self._booted) > BOOTED_SLACK:
            self._booted = booted
        host["booted"] = self._booted

    def _read_load(self, host: dict[str, Any]) -> None:
        host["load1"] = float(read_bytes(self._loadavg, 256).split()[0])

    def _read_memory(self, host: dict[str, Any]) -> None:
        host["memory"] = read_memory(self._meminfo)

    def _read_disk(self, host: dict[str, Any], unavailable: dict[str, str], slow: bool) -> None:
        if slow:
            try:
                state = os.statvfs(self._call.resolve("/"))
            except OSError as error:
                self._disk, self._disk_reason = {}, explain(error)
            else:
                # Free for anyone, not the blocks that the file system keeps for root.
                self._disk = {"total": state.f_blocks * state.f_frsize, "free": state.f_bavail * state.f_frsize}
                self._disk_reason = None
        if self._disk:
            host["disk"] = self._disk
        elif self._disk_reason:
            unavailable["/host/disk"] = self._disk_reason

    def _read_io(self, host: dict[str, Any], unavailable: dict[str, str], slow: bool) -> None:
        counts: dict[str, tuple[int, int]] = {}
        try:
            for line in read_bytes(self._diskstats, 1 << 20).splitlines():
                words = line.split()
                counts[words[2].decode("utf-8", "replace")] = (int(words[5]) * SECTOR, int(words[9]) * SECTOR)
        except (OSError, ValueError, IndexError) as error:
            unavailable["/host/io"] = explain(error)
            return
        self._disks.choose(counts, slow, lambda names: disk_devices(self._call, names))
        if self._disks.chosen:
            read, written = self._disks.add(counts)
            host["io"] = {"read": read, "write": written}
        else:
            unavailable["/host/io"] = "no physical disk is visible from here"

    def _read_net(self, host: dict[str, Any], unavailable: dict[str, str], slow: bool) -> None:
        counts: dict[str, tuple[int, int]] = {}
        try:
            for line in read_bytes(self._net_dev, 1 << 20).splitlines()[2:]:
                name, _, rest = line.partition(b":")
                words = rest.split()
                counts[name.strip().decode("utf-8", "replace")] = (int(words[0]), int(words[8]))
        except (OSError, ValueError, IndexError) as error:
            unavailable["/host/net"] = explain(error)
            return
        self._interfaces.choose(counts, slow, lambda names: network_devices(self._call, names))
        if self._interfaces.chosen:
            received, sent = self._interfaces.add(counts)
            host["net"] = {"rx": received, "tx": sent}
        else:
            unavailable["/host/net"] = "no physical interface and no default route is visible from here"


def read_memory(path: str) -> dict[str, int]:
    """Bytes from a /proc/meminfo: ``total``, ``available``, ``swap_total``, ``swap_used``.

    Raises:
        OSError: it cannot be read.
        KeyError: a line is missing (``MemAvailable`` came with Linux 3.14).
        ValueError: a line holds no number.
    """
    values: dict[bytes, int] = {}
    for line in read_bytes(path, 1 << 14).splitlines():
        key, _, rest = line.partition(b" ")
        if key in _MEMORY:
            values[key] = int(rest.split()[0]) * 1024
            if len(values) == len(_MEMORY):
                break
    return {
        "total": values[b"MemTotal:"],
        "available": values[b"MemAvailable:"],
        "swap_total": values[b"SwapTotal:"],
        "swap_used": values[b"SwapTotal:"] - values[b"SwapFree:"],
    }


def explain(error: Exception) -> str:
    """The reason that a person reads after "n/a, because"."""
    if isinstance(error, OSError):
        return cut(f"{error.filename} cannot be read: {error.strerror}")
    return cut(f"the kernel's answer is not as documented: {error}")
