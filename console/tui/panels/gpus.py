"""The GPUs: one line each, and who holds their memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.strip import Strip

from console.domain.telemetry.sample import GpuHolder, GpuSample, Sample
from console.domain.words import figures as form
from console.services.history import GpuKey
from console.tui.panels.panel import clip, text, title_line
from console.tui.panels.picture import Picture, Told, told
from console.tui.panels.rows import Entry, entry_line, heading, visible
from console.tui.theme import Look
from console.tui.widgets.rows import Cell, Column
from console.tui.widgets.strip import line

COLUMNS = (
    Column("name", "GPUS", 14, "<", grows=True, most=34),
    Column("utilization", "UTIL", 5),
    Column("dram", "DRAM", 7),
    Column("rate", "GB/s", 6, priority=3),
    Column("memory", "MEMORY GiB", 11),
    Column("temperature", "TEMP", 6, priority=1),
    Column("power", "POWER", 7, priority=2),
    Column("clock", "SM CLOCK", 9, priority=5),
    Column("held", "HELD BY", 18, "<", priority=4, grows=True, most=70),
)


def choices(sample: Sample | None) -> list[GpuKey | None]:
    """What can be looked at: all, and each by itself."""
    return [None, *(GpuKey(gpu.uuid) for gpu in sample.gpus)] if sample is not None else [None]


class Gpus:
    """All GPUs and MIG devices."""

    id = "gpus"
    title = "GPUS"

    def __init__(self) -> None:
        self.drawn: list[GpuKey | None] = []
        """What stands on each line under the heading."""

    def draw(self, picture: Picture, width: int, height: int, look: Look, *, chosen: bool) -> list[Strip]:
        """See ``Panel``."""
        sample = picture.sample
        self.drawn = []
        if sample is None or not sample.gpus:
            reason = picture.reason("/gpus") if sample is not None else picture.why("dram_percent")
            return [
                title_line(
                    look, self.title, width, chosen=chosen, left=[text(look, f"n/a, because {reason}", "dim")]
                )
            ]
        columns = _columns(sample)
        gpus = sample.gpus
        more = len(gpus) - (height - 1)
        title = f"GPUS, {more} MORE" if 0 < more < len(gpus) else self.title
        lines = [heading(columns, width, look, chosen=chosen, title=title)]
        uuids = [gpu.uuid for gpu in gpus]
        cursor = uuids.index(picture.chosen.gpu.uuid) if picture.chosen.gpu and picture.gpu else -1
        holders = sum(max(len(gpu.holders), 0) for gpu in gpus)
        spread = height - 1 >= len(gpus) + holders and holders > 0
        ill = next((place for place, gpu in enumerate(gpus) if gpu.state != "ok"), 0)
        for number in visible(len(gpus), cursor if cursor >= 0 else ill, height - 1):
            entry = _entry(gpus[number])
            under = number == cursor
            lines.append(entry_line(entry, columns, width, look, under_cursor=under, dim=not picture.live))
            held = _holders(gpus[number], width, look) if spread else []
            lines += held
            self.drawn += [GpuKey(gpus[number].uuid)] * (1 + len(held))
        return lines[:height]

    def figures(self, picture: Picture) -> Sequence[Told]:
        """Of the chosen GPU, or of all."""
        if picture.sample is None:
            return []
        gpus = [picture.gpu] if picture.gpu is not None else picture.sample.gpus
        return [one for gpu in gpus for one in _told(gpu, picture)]

    def explain(self, picture: Picture) -> str:
        """What is special about the chosen GPU, or the first that has something."""
        if picture.sample is None or not picture.sample.gpus:
            return ""
        gpu = picture.gpu or picture.sample.gpus[0]
        parts = [f"GPU {gpu.index} {gpu.name or ''}".rstrip()]
        if gpu.state != "ok":
            return f"{parts[0]} is {gpu.state}" + (f": {gpu.state_reason}" if gpu.state_reason else "")
        if gpu.dram_percent is None:
            parts.append(f"DRAM n/a, because {picture.reason(_pointer(gpu, picture, 'dram_percent'))}")
        if gpu.throttle:
            parts.append(f"clocks held down by {', '.join(gpu.throttle)}")
        if gpu.ecc_uncorrected:
            parts.append(f"{gpu.ecc_uncorrected} uncorrected ECC errors since the driver was loaded")
        if gpu.remapped_pending:
            parts.append("a memory row waits to be remapped: the GPU needs a reset")
        if gpu.holders:
            parts.append("memory held by " + ", ".join(holder_words(holder) for holder in _biggest(gpu)))
        return ", ".join(parts)


def holder_words(holder: GpuHolder) -> str:
    """A holder in words: process, how much, and whose it is."""
    owner = holder.model or holder.server or holder.container or holder.unit
    size = form.size(holder.memory) if holder.memory is not None else "an unknown amount"
    words = f"{holder.process or 'process'} {holder.pid} {size}"
    if holder.orphan:
        return f"{words} (nobody living)"
    return f"{words} ({owner})" if owner else words


def _biggest(gpu: GpuSample) -> list[GpuHolder]:
    return sorted(gpu.holders, key=lambda holder: -(holder.memory or 0))


def _columns(sample: Sample) -> tuple[Column, ...]:
    held = any(gpu.holders for gpu in sample.gpus)
    return COLUMNS if held else COLUMNS[:-1]


def _holders(gpu: GpuSample, width: int, look: Look) -> list[Strip]:
    return [
        line([clip(look, f"    {holder_words(holder)}", width, "warn" if holder.orphan else "dim")], width)
        for holder in _biggest(gpu)
    ]


def _entry(gpu: GpuSample) -> Entry:
    mig = " (MIG)" if gpu.mig and "MIG" not in (gpu.name or "") else ""
    model = (gpu.name or "name not known").removeprefix("NVIDIA ")
    name = Cell(f"{gpu.index} {model}{mig}", "strong" if gpu.state != "ok" else "text")
    if gpu.state != "ok":
        reason = f": {gpu.state_reason}" if gpu.state_reason else ""
        return Entry({"name": name}, f"{gpu.state.upper()}{reason}", "bad")
    holders = _biggest(gpu)
    held = ", ".join(holder_words(holder) for holder in holders[:3]) + ("…" if len(holders) > 3 else "")
    return Entry(
        {
            "name": name,
            "utilization": _cell(gpu.utilization_percent, form.whole_percent),
            "dram": _cell(gpu.dram_percent, form.percent),
            "rate": _cell(gpu.dram_gb_s, form.number),
            "memory": _memory(gpu),
            "temperature": _cell(gpu.temperature_c, "{:.0f} °C".format, "warn" if _hot(gpu) else "text"),
            "power": _cell(gpu.power_w, "{:.0f} W".format),
            "clock": _cell(gpu.sm_clock_mhz, "{:.0f} MHz".format, "warn" if gpu.throttle else "text"),
            "held": Cell(held, "warn" if any(holder.orphan for holder in holders) else "dim"),
        }
    )


def _hot(gpu: GpuSample) -> bool:
    return any("Thermal" in reason for reason in gpu.throttle)


def _memory(gpu: GpuSample) -> Cell:
    if gpu.memory_used is None or gpu.memory_total is None:
        return Cell(form.NA, "dim")
    return Cell(f"{gpu.memory_used / 2**30:.1f}/{gpu.memory_total / 2**30:.1f}")


def _cell(value: float | None, write: Callable[[float], str], role: str = "text") -> Cell:
    return Cell(write(value), role) if value is not None else Cell(form.NA, "dim")


def _told(gpu: GpuSample, picture: Picture) -> list[Told]:
    name = f"GPU {gpu.index}"
    if gpu.state != "ok":
        return [Told(f"{name}: state", gpu.state, "", gpu.state, gpu.state_reason)]
    figures = (
        ("utilization_percent", "utilisation", "%", form.whole_percent),
        ("dram_percent", "DRAM throughput", "%", form.percent),
        ("dram_gb_s", "DRAM throughput", "GB/s", form.number),
        ("memory_used", "memory used", "B", form.size),
        ("memory_total", "memory", "B", form.size),
        ("temperature_c", "temperature", "°C", "{:.0f} °C".format),
        ("power_w", "power", "W", "{:.0f} W".format),
    )
    return [
        told(f"{name}: {words}", getattr(gpu, field), unit, write, picture.reason(_pointer(gpu, picture, field)))
        for field, words, unit, write in figures
    ]


def _pointer(gpu: GpuSample, picture: Picture, field: str) -> str:
    place = picture.sample.gpus.index(gpu) if picture.sample is not None else 0
    return f"/gpus/{place}/{field}"
