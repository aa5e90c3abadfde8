"""Which disks and interfaces are physical, and counters summed over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from remote_scripts.call import Call
from remote_scripts.files import read_bytes

MAX_DEVICES = 4096
"""Names looked up at most: a host of containers has thousands of veth pairs."""


class Devices:
    """Two cumulative counters summed over a changing set of devices, such that the sums never step.

    A device that appears later counts from where it then stood, and one that goes leaves what it counted: a
    hot-plugged disk is no burst of traffic and a removed one no reset.
    """

    __slots__ = ("_last", "_names", "_sums", "chosen")

    def __init__(self) -> None:
        self._names: frozenset[str] | None = None
        self._last: dict[str, tuple[int, int]] = {}
        self._sums: tuple[int, int] | None = None
        self.chosen: frozenset[str] = frozenset()

    def choose(
        self, counts: Mapping[str, object], again: bool, pick: Callable[[Iterable[str]], frozenset[str]]
    ) -> None:
        """Picks the devices that count, at the first call, when a name came or went, and when asked to."""
        names = frozenset(counts)
        if again or names != self._names:
            self._names = names
            self.chosen = pick(names)

    def add(self, counts: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
        """The two sums, brought up to ``counts`` (device to its two cumulative counters)."""
        now = {name: counts[name] for name in self.chosen if name in counts}
        if self._sums is None:
            first, second = sum(pair[0] for pair in now.values()), sum(pair[1] for pair in now.values())
        else:
            first, second = self._sums
            for name, pair in now.items():
                before = self._last.get(name, pair)
                first += max(0, pair[0] - before[0])
                second += max(0, pair[1] - before[1])
        self._last, self._sums = now, (first, second)
        return first, second


def disk_devices(call: Call, names: Iterable[str]) -> frozenset[str]:
    """Whole physical disks: those with a device behind them (no partition, loop, dm, md, zram)."""
    block = call.resolve("/sys/block")
    return frozenset(name for name in _bounded(names) if (block / name / "device").exists())


def network_devices(call: Call, names: Iterable[str]) -> frozenset[str]:
    """Physical interfaces; where there are none (a container), those that carry a default route.

    A virtual function that is enslaved to a physical interface (accelerated networking) is left out: its master
    counts its traffic already. The members of a bond count themselves, the bond has no device.
    """
    net = call.resolve("/sys/class/net")
    found = frozenset(
        name
        for name in _bounded(names)
        if (net / name / "device").exists() and not (net / name / "master" / "device").exists()
    )
    return found or _routed(call) & frozenset(names)


def _routed(call: Call) -> frozenset[str]:
    """Interfaces with an IPv4 or IPv6 default route."""
    found = set()
    try:
        for line in read_bytes(str(call.resolve("/proc/net/route"))).splitlines()[1:]:
            words = line.split()
            if len(words) > 7 and words[1] == b"00000000" and words[7] == b"00000000":
                found.add(words[0].decode("utf-8", "replace"))
        for line in read_bytes(str(call.resolve("/proc/net/ipv6_route")), 1 << 18).splitlines():
            words = line.split()
            if len(words) > 9 and words[1] == b"00" and words[4].strip(b"0"):
                found.add(words[9].decode("utf-8", "replace"))
    except OSError:
        # IPv6 may be off, its table is then not there.
        return frozenset(found)
    return frozenset(found)


def _bounded(names: Iterable[str]) -> list[str]:
    return [name for name in sorted(names) if "/" not in name and name not in (".", "..")][:MAX_DEVICES]
