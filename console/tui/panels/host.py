"""The machine itself: processor, memory, disk, network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.segment import Segment
from textual.strip import Strip

from console.domain.telemetry.sample import HostSample
from console.domain.words import figures as form
from console.tui.panels.panel import text, title_line
from console.tui.panels.picture import Picture, Told, told
from console.tui.theme import Look
from console.tui.widgets.gauge import gauge
from console.tui.widgets.strip import cell, line

_LABEL = 9
_MEMORY_HIGH, _DISK_HIGH = 0.92, 0.9
"""Shares from which a bar asks for a look."""


class Host:
    """One line where there is no room, otherwise one for each part."""

    id = "host"
    title = "HOST"

    def draw(self, picture: Picture, width: int, height: int, look: Look, *, chosen: bool) -> list[Strip]:
        """See ``Panel``."""
        if picture.sample is None:
            return [
                title_line(look, self.title, width, chosen=chosen, left=[text(look, picture.why("rps"), "dim")])
            ]
        host = picture.sample.host
        high = picture.thresholds.cpu_high_percent
        if height < 5:
            return [title_line(look, self.title, width, chosen=chosen, left=_short(host, high, look))]
        bar = max(min(width - _LABEL - 34, 40), 8)
        rows = [
            ("CPU", _share(host.cpu.busy_percent, 100), _cpu(host), _over(host.cpu.busy_percent, high)),
            ("memory", _used(host.memory_total, host.memory_available), _memory(host),
             _above(_used(host.memory_total, host.memory_available), _MEMORY_HIGH)),
            ("disk /", _used(host.disk_total, host.disk_free), _disk(host),
             _above(_used(host.disk_total, host.disk_free), _DISK_HIGH)),
        ]  # fmt: skip
        lines = [title_line(look, self.title, width, chosen=chosen, left=[text(look, _since(host), "dim")])]
        for label, share, words, wants_look in rows:
            pieces = [
                cell(label, _LABEL, look["dim"]),
                *gauge(share, bar, look, "warn" if wants_look else "graph"),
                text(look, f"  {words}", "text" if picture.live else "dim"),
            ]
            lines.append(line(pieces, width))
        lines.append(line([cell("network", _LABEL, look["dim"]), text(look, _network(host))], width))
        return lines[:height]

    def figures(self, picture: Picture) -> Sequence[Told]:
        """See ``Panel``."""
        if picture.sample is None:
            return []
        host = picture.sample.host
        figures: tuple[tuple[str, float | None, str, Callable[[float], str], str], ...] = (
            ("CPU", host.cpu.busy_percent, "%", form.percent, "/host/cpu/busy_percent"),
            ("iowait", host.cpu.iowait_percent, "%", form.percent, "/host/cpu/iowait_percent"),
            ("load", host.cpu.load1, "", form.number, "/host/cpu/load1"),
            ("memory", host.memory_total, "B", form.size, "/host/memory_total"),
            ("memory available", host.memory_available, "B", form.size, "/host/memory_available"),
            ("swap used", host.swap_used, "B", form.size, "/host/swap_used"),
            ("disk /", host.disk_total, "B", form.size, "/host/disk_total"),
            ("disk / free", host.disk_free, "B", form.size, "/host/disk_free"),
            ("disk reads", host.disk_read_rate, "B/s", form.rate, "/host/disk_read_rate"),
            ("disk writes", host.disk_write_rate, "B/s", form.rate, "/host/disk_write_rate"),
            ("network in", host.net_rx_rate, "B/s", form.rate, "/host/net_rx_rate"),
            ("network out", host.net_tx_rate, "B/s", form.rate, "/host/net_tx_rate"),
        )
        return [
            told(name, value, unit, write, picture.reason(pointer)) for name, value, unit, write, pointer in figures
        ]

    def explain(self, picture: Picture) -> str:
        """See ``Panel``."""
        missing = [one for one in self.figures(picture) if one.value is None]
        if missing:
            return f"{missing[0].name}: n/a, because {missing[0].why}"
        high = picture.thresholds.cpu_high_percent
        return f"busy time of all cores, iowait not counted; above {high:g} %: preprocessing may hold the GPUs back"


def _short(host: HostSample, high: float, look: Look) -> list[Segment]:
    busy = host.cpu.busy_percent
    cpu = form.percent(busy) if busy is not None else form.NA
    words = [
        text(look, "CPU ", "dim"),
        text(look, cpu, "warn" if _over(busy, high) else "text"),
    ]
    for label, share in (
        ("memory", _used(host.memory_total, host.memory_available)),
        ("disk", _used(host.disk_total, host.disk_free)),
    ):
        words += [
            text(look, f"  {label} ", "dim"),
            text(look, form.whole_percent(100 * share) if share is not None else form.NA),
        ]
    return [*words, text(look, "  net ", "dim"), text(look, _network(host))]


def _cpu(host: HostSample) -> str:
    cpu = host.cpu
    words = form.percent(cpu.busy_percent) if cpu.busy_percent is not None else form.NA
    if cpu.cores:
        words += f" of {cpu.cores} cores" if cpu.cores > 1 else " of 1 core"
    if cpu.load1 is not None:
        words += f", load {form.number(cpu.load1)}"
    for value, name in ((cpu.iowait_percent, "iowait"), (cpu.steal_percent, "steal")):
        if value is not None and value >= 1:
            words += f", {name} {form.percent(value)}"
    return words


def _memory(host: HostSample) -> str:
    if host.memory_total is None or host.memory_available is None:
        return form.NA
    words = form.share(host.memory_total - host.memory_available, host.memory_total)
    return f"{words}, swap {form.size(host.swap_used)}" if host.swap_used else words


def _disk(host: HostSample) -> str:
    used = form.NA
    if host.disk_total is not None and host.disk_free is not None:
        used = form.share(host.disk_total - host.disk_free, host.disk_total)
    return f"{used}, read {_rate(host.disk_read_rate)}, write {_rate(host.disk_write_rate)}"


def _network(host: HostSample) -> str:
    return f"in {_rate(host.net_rx_rate)}, out {_rate(host.net_tx_rate)}"


def _rate(value: float | None) -> str:
    return form.rate(value) if value is not None else form.NA


def _since(host: HostSample) -> str:
    up = f"up {form.duration(host.uptime_s)}" if host.uptime_s is not None else ""
    return "  ".join(part for part in (host.hostname or "", up) if part)


def _used(total: int | None, free: int | None) -> float | None:
    return (total - free) / total if total and free is not None else None


def _share(value: float | None, whole: float) -> float | None:
    return value / whole if value is not None else None


def _over(value: float | None, limit: float) -> bool:
    return value is not None and value > limit


def _above(value: float | None, limit: float) -> bool:
    return value is not None and value > limit
