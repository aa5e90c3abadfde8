"""The document's ``gpus``: one sample a GPU and a MIG device."""

from __future__ import annotations

from collections.abc import Mapping

from console.domain.gpu import MEMORY_BUSY, peak
from console.domain.telemetry.merge import Document, point
from console.domain.telemetry.reasons import UNTOLD, Reasons
from console.domain.telemetry.sample import GpuSample
from console.domain.telemetry.text import printable

_SOURCES = {
    "utilization_percent": "utilization",
    "memory_busy_percent": "memory_busy",
    "temperature_c": "temperature",
    "memory_temperature_c": "memory_temperature",
    "dram_gb_s": "dram_percent",
    "dram_source": "dram_percent",
    "dram_peak_gb_s": "max_memory_clock_mhz",
    "dram_peak_basis": "max_memory_clock_mhz",
}
_ON_MIG = "on MIG it is not documented what the percentage is a share of"
_NO_HOLDER = {
    "memory": "the driver does not say how much this process holds",
    "container": "not in a container",
    "unit": "not run by a unit",
    "server": "of no Triton server that is known",
    "model": "the process does not say which model it serves",
}
_NO_PEAK = "the peak is not known: the device does not tell its memory clock or bus width"


def gpus(found: Mapping[str, Document], source: str | None, reasons: Reasons) -> tuple[GpuSample, ...]:
    """The GPUs' part of a sample, by index, each GPU before its MIG devices.

    Args:
        found: The document's ``gpus``, by UUID or ``index-N``.
        source: "nvml" or "nvidia-smi", from the document's ``driver``.
        reasons: Takes the reasons of what is not there.
    """
    reasons.pass_on("/gpus", "/gpus")
    order = sorted(found, key=lambda uuid: (found[uuid].get("index", 1 << 20), "parent" in found[uuid], uuid))
    return tuple(_gpu(number, uuid, found[uuid], source, reasons) for number, uuid in enumerate(order))


def _gpu(number: int, uuid: str, now: Document, source: str | None, reasons: Reasons) -> GpuSample:
    state = now.get("state", "ok")
    mig = now.get("mig", False) or "parent" in now
    percent = now.get("dram_percent")
    own: dict[str, str] = {}
    top = None if mig else peak(now.get("name"), now.get("max_memory_clock_mhz"), now.get("bus_width_bits"))
    if mig:
        own = dict.fromkeys(("dram_gb_s", "dram_peak_gb_s", "dram_peak_basis"), _ON_MIG)
    elif top is None and percent is not None:
        own["dram_gb_s"] = _NO_PEAK
    if "parent" not in now:
        own["parent"] = "not a MIG device"
    sample = GpuSample(
        index=now.get("index", number),
        uuid=printable(uuid),
        name=now.get("name"),
        state=state,
        state_reason=now.get("reason"),
        source=source or "nvml",
        mig=mig,
        parent=now.get("parent"),
        utilization_percent=now.get("utilization"),
        memory_busy_percent=now.get("memory_busy"),
        memory_total=now.get("memory_total"),
        memory_used=now.get("memory_used"),
        memory_free=now.get("memory_free"),
        memory_reserved=now.get("memory_reserved"),
        temperature_c=now.get("temperature"),
        memory_temperature_c=now.get("memory_temperature"),
        power_w=now.get("power_w"),
        power_limit_w=now.get("power_limit_w"),
        energy_j=now.get("energy_j"),
        sm_clock_mhz=now.get("sm_clock_mhz"),
        memory_clock_mhz=now.get("memory_clock_mhz"),
        throttle=now.get("throttle", ()),
        dram_percent=percent,
        dram_gb_s=None if percent is None or top is None else top[0] * percent / 100,
        dram_peak_gb_s=None if top is None else top[0],
        dram_peak_basis=None if top is None else top[1],
        dram_source=_dram_source(now),
        sm_percent=now.get("sm_percent"),
        tensor_percent=now.get("tensor_percent"),
        pcie_rx_mib_s=now.get("pcie_rx_mib_s"),
        pcie_tx_mib_s=now.get("pcie_tx_mib_s"),
        ecc_uncorrected=now.get("ecc_uncorrected"),
        remapped_pending=now.get("remapped_pending"),
        remapped_failure=now.get("remapped_failure"),
        holders=now.get("holders", ()),
    )
    default = UNTOLD if state == "ok" else f"the GPU is {state}: {now.get('reason', 'no reason given')}"
    place = point("/gpus", uuid)
    reasons.explain(sample, f"/gpus/{number}", place, _SOURCES, own, default)
    reasons.pass_on(f"/gpus/{number}/holders", f"{place}/holders")
    _explain_holders(sample, number, place, reasons)
    return sample


def _dram_source(now: Document) -> str | None:
    """Where the throughput comes from; without one, the duty cycle that stands in its place, by its own name."""
    if "dram_percent" in now:
        source: str | None = now.get("dram_source")
        return source
    return MEMORY_BUSY if "memory_busy" in now else None


def _explain_holders(sample: GpuSample, number: int, place: str, reasons: Reasons) -> None:
    for order, holder in enumerate(sample.holders):
        there = f"{place}/holders/{order}"
        own = {name: reasons.exactly(f"{there}/{name}") or reason for name, reason in _NO_HOLDER.items()}
        reasons.explain(holder, f"/gpus/{number}/holders/{order}", there, {}, own)
