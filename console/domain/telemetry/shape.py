"""The telemetry document of docs/wire.md 3, as data: what may stand where, and how much of it.

What is not named here is not kept, so a peer cannot fill the memory with keys nobody reads, and a newer script
may send more than this side knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from console.domain.telemetry import kinds
from console.domain.telemetry.text import printable

MAX_GPUS = 64
MAX_SERVERS = 32
MAX_MODELS = 2_000
MAX_VERSIONS = 64
MAX_BATCH_SIZES = 20_000
MAX_SERIES = 2_000
MAX_REASONS = 20_000
MAX_KEY = 512
"""Characters of a name: a model, a container, a series with its labels, a JSON Pointer."""
MAX_WEIGHT = 300_000
"""Values in a whole document, a long text counting for several: more than a line of 4 MiB can bring at once. A
peer that piles up more with its patches is not believed."""


@dataclass(frozen=True, slots=True)
class Branch:
    """An object with known keys."""

    keys: Mapping[str, Shape]
    leaves: Mapping[str, Kind] = field(init=False)
    """Those of the keys that hold plain values."""

    def __post_init__(self) -> None:
        leaves = {name: shape for name, shape in self.keys.items() if not isinstance(shape, (Branch, Many))}
        object.__setattr__(self, "leaves", leaves)


@dataclass(frozen=True, slots=True)
class Many:
    """An object whose keys are names, of at most ``limit`` of them."""

    limit: int
    of: Shape
    what: str
    """The plural for a reason: "GPUs"."""
    key: Callable[[str], Any] | None = None
    """Turns a name into the key under which its value is kept; None keeps the name."""


Kind: TypeAlias = Callable[[object], Any]
Shape: TypeAlias = "Branch | Many | Kind"


def _each(kind: Kind, *names: str) -> dict[str, Shape]:
    return dict.fromkeys(names, kind)


HOST = Branch(
    {
        **_each(kinds.text, "hostname", "boot_id"),
        **_each(kinds.number, "booted", "load1"),
        "cpu": Branch(
            {"cores": kinds.count, **_each(kinds.number, "user", "system", "iowait", "steal", "idle")},
        ),
        "memory": Branch(_each(kinds.count, "total", "available", "swap_total", "swap_used")),
        "disk": Branch(_each(kinds.count, "total", "free")),
        "io": Branch(_each(kinds.count, "read", "write")),
        "net": Branch(_each(kinds.count, "rx", "tx")),
    }
)

GPU = Branch(
    {
        **_each(kinds.text, "name", "state", "reason", "parent", "arch", "dram_source"),
        **_each(kinds.flag, "mig", "remapped_pending", "remapped_failure"),
        **_each(kinds.count, "index", "memory_total", "memory_used", "memory_free", "memory_reserved"),
        **_each(kinds.count, "bus_width_bits", "ecc_uncorrected"),
        **_each(kinds.percent, "utilization", "memory_busy", "dram_percent", "sm_percent", "tensor_percent"),
        **_each(kinds.signed, "temperature", "memory_temperature"),
        **_each(kinds.number, "power_w", "power_limit_w", "energy_j", "max_memory_clock_mhz"),
        **_each(kinds.number, "sm_clock_mhz", "memory_clock_mhz", "pcie_rx_mib_s", "pcie_tx_mib_s"),
        "throttle": kinds.words,
        "holders": kinds.holders,
    }
)

MODEL = Branch(
    {
        **_each(kinds.text, "state", "reason", "backend", "scheduling"),
        **_each(kinds.flag, "decoupled", "in_flight_batching", "response_cache"),
        "max_batch_size": kinds.count,
        **_each(kinds.count, "success", "fail", "cache_hit", "cache_miss", "executions", "inferences"),
        **_each(kinds.count, "success_ns", "fail_ns", "queue_ns"),
        **_each(kinds.count, "compute_input_ns", "compute_infer_ns", "compute_output_ns"),
        "last_inference_ms": kinds.count,
        "batches": Many(MAX_BATCH_SIZES, kinds.batch, "batch sizes", kinds.batch_size),
        "responses": Branch(
            {
                **_each(kinds.count, "count", "success", "fail", "empty", "first_count"),
                **_each(kinds.count, "compute_infer_ns", "compute_output_ns", "first_ns"),
            }
        ),
        **_each(kinds.count, "metrics_success", "metrics_executions"),
        "failures": Branch(_each(kinds.count, "REJECTED", "CANCELED", "BACKEND", "OTHER")),
        "pending": kinds.number,
        "p95_us": kinds.number,
        "series": Many(MAX_SERIES, kinds.signed, "series", printable),
    }
)

SERVER = Branch(
    {
        **_each(kinds.text, "how", "unit", "container", "state", "reason", "version", "http", "grpc", "metrics"),
        "control_mode": kinds.text,
        "strict_readiness": kinds.flag,
        **_each(kinds.count, "pid", "restarts"),
        **_each(kinds.number, "started", "exit_timeout_s"),
        "models": Many(MAX_MODELS, Many(MAX_VERSIONS, MODEL, "versions"), "models"),
        "series": Many(MAX_SERIES, kinds.signed, "series", printable),
    }
)

DOCUMENT = Branch(
    {
        "host": HOST,
        "driver": Branch(_each(kinds.text, "source", "version", "cuda", "kernel_version")),
        "gpus": Many(MAX_GPUS, GPU, "GPUs and MIG devices"),
        "servers": Many(MAX_SERVERS, SERVER, "servers"),
        "unavailable": Many(MAX_REASONS, kinds.text, "reasons"),
    }
)
