"""The GPUs in a picture: one row each, then what does not fit a row."""

from __future__ import annotations

from console.cli.output import Output
from console.cli.render.table import table
from console.domain.telemetry.sample import GpuHolder, GpuSample, Sample
from console.domain.words import figures as form
from console.domain.words.cells import wrap
from console.domain.words.figures import NA, UNEXPLAINED, Figures
from console.domain.words.gpus import NONE, gpu_number

_HEADING = ("GPU", "UTIL", "DRAM", "GB/s", "MEMORY GiB", "TEMP", "POWER")
_MAX_HOLDERS = 6


def gpu_lines(sample: Sample, figures: Figures, output: Output) -> list[str]:
    """Lines for all GPUs and MIG devices, the heading and an empty line before it included."""
    if not sample.gpus:
        reason = sample.unavailable.get("/gpus")
        found = f"{NA}, because {reason or UNEXPLAINED}" if reason or not sample.driver_version else f"none: {NONE}"
        return ["", *wrap(f"{output.paint('GPU', 'bold')}     {found}", output.width, "        ")]
    numbers = [gpu_number(gpu, sample.gpus) for gpu in sample.gpus]
    rows = [_HEADING, *(_row(place, numbers[place], gpu, figures) for place, gpu in enumerate(sample.gpus))]
    lines = ["", *table(rows, "<>>>>>>", output.width if output.terminal else None)]
    lines[1] = output.paint(lines[1], "bold")
    bandwidths = {_bandwidth(gpu) for gpu in sample.gpus if gpu.state == "ok"}
    same = bandwidths.pop() if len(bandwidths) == 1 and sample.driver_version else None
    remarks: dict[str, list[str]] = {}
    for own, gpu in zip(numbers, sample.gpus, strict=True):
        for text in (_bandwidth(gpu), *_remarks(gpu)):
            if text is not None and text != same:
                remarks.setdefault(text, []).append(own)
    if sample.driver_version:
        source = {"nvml": "NVML"}.get(sample.gpu_source or "", sample.gpu_source or "the driver")
        text = f"  driver {sample.driver_version}, figures by {source}" + (f"; {same}" if same else "")
        lines += [output.paint(line, "dim") for line in wrap(text, output.width, "  ")]
    for text, owners in remarks.items():
        lines += wrap(f"  {', '.join(owners)}: {text}", output.width, "     ")
    return lines


def dram(gpu: GpuSample) -> str:
    """Where the DRAM figure is from, in the words of the field."""
    return {"gpm": "NVML GPM", "dcgm-exporter": "DCGM exporter"}.get(gpu.dram_source or "", gpu.dram_source or "")


def _row(place: int, own: str, gpu: GpuSample, figures: Figures) -> tuple[str, ...]:
    here, of = f"/gpus/{place}", f"GPU {own}"
    if gpu.state != "ok":
        return (f"{own} {gpu.state.upper()} {gpu.name or ''}".rstrip(), *("-",) * 6)
    mark = " (MIG)" if gpu.mig and "MIG" not in (gpu.name or "") else ""
    if gpu.memory_used is None or gpu.memory_total is None:
        memory = figures.show(None, form.size, f"{here}/memory_used", "MEMORY", of=of)
    else:
        memory = f"{gpu.memory_used / 2**30:.1f}/{gpu.memory_total / 2**30:.1f}"
    cells = (
        ("utilization_percent", form.whole_percent, "UTIL"),
        ("dram_percent", form.percent, "DRAM"),
        ("dram_gb_s", form.number, "GB/s"),
        ("temperature_c", "{:.0f} °C".format, "TEMP"),
        ("power_w", "{:.0f} W".format, "POWER"),
    )
    shown = [
        figures.show(getattr(gpu, field), write, f"{here}/{field}", what, of=of) for field, write, what in cells
    ]
    return (f"{own} {gpu.name or 'name not known'}{mark}", *shown[:3], memory, *shown[3:])


def _bandwidth(gpu: GpuSample) -> str | None:
    if gpu.dram_percent is not None:
        peak = f" of {form.number(gpu.dram_peak_gb_s)} GB/s peak" if gpu.dram_peak_gb_s else ""
        return f"DRAM by {dram(gpu)}{peak}"
    if gpu.memory_busy_percent is not None:
        return f"memory busy {form.whole_percent(gpu.memory_busy_percent)} of the time (not bandwidth)"
    return None


def _remarks(gpu: GpuSample) -> list[str]:
    found = []
    if gpu.throttle:
        found.append(f"clocks held down by {', '.join(gpu.throttle)}")
    if gpu.ecc_uncorrected:
        found.append(f"{gpu.ecc_uncorrected} uncorrected ECC errors since the driver was loaded")
    if gpu.remapped_pending:
        found.append("a memory row waits to be remapped: the GPU needs a reset")
    if gpu.remapped_failure:
        found.append("remapping a memory row failed")
    if gpu.holders:
        biggest = sorted(gpu.holders, key=lambda holder: -(holder.memory or 0))
        more = f", {len(biggest) - _MAX_HOLDERS} more" if len(biggest) > _MAX_HOLDERS else ""
        found.append("memory held by " + ", ".join(_holder(holder) for holder in biggest[:_MAX_HOLDERS]) + more)
    return found


def _holder(holder: GpuHolder) -> str:
    owner = holder.model or holder.server or holder.container or holder.unit
    size = form.size(holder.memory) if holder.memory is not None else "an unknown amount"
    text = f"{holder.process or 'process'} {holder.pid} {size}"
    if holder.orphan:
        return f"{text} (nobody living)"
    return f"{text} ({owner})" if owner else text
