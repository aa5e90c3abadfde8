"""A complete sample: what is true about a droplet at one moment.

Screens, rules, recordings, `status` and `watch` see nothing but these. Every figure is a number or None, and
every None has its reason in ``Sample.unavailable`` under the figure's JSON Pointer (RFC 6901), for example
``/servers/0/models/2/hit_rate``. Cumulative counters and the rates made from them both stand here; a rate is
over the time since the previous sample of the same droplet (``interval``).

Units are in the field names' docstrings: bytes, seconds, percent (0 to 100), watts, degrees Celsius, MHz.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SCHEMA = "sample/1"

EXPLAIN_THEMSELVES = frozenset({"gap", "reason", "state_reason"})
"""Fields that are themselves an explanation: None means that there is nothing to explain."""


@dataclass(frozen=True, slots=True)
class CpuSample:
    """Processor time, from /proc/stat."""

    cores: int | None = None
    busy_percent: float | None = None
    """Of all cores together, 0 to 100, iowait not counted as busy."""
    iowait_percent: float | None = None
    steal_percent: float | None = None
    load1: float | None = None


@dataclass(frozen=True, slots=True)
class HostSample:
    """The machine itself."""

    hostname: str | None = None
    boot_id: str | None = None
    """Changes with every boot (/proc/sys/kernel/random/boot_id)."""
    uptime_s: float | None = None
    cpu: CpuSample = field(default_factory=CpuSample)
    memory_total: int | None = None
    memory_available: int | None = None
    swap_total: int | None = None
    swap_used: int | None = None
    disk_total: int | None = None
    """Bytes of the file system that holds /."""
    disk_free: int | None = None
    disk_read_bytes: int | None = None
    """Cumulative since boot, over the whole disks."""
    disk_write_bytes: int | None = None
    disk_read_rate: float | None = None
    """Bytes per second."""
    disk_write_rate: float | None = None
    net_rx_bytes: int | None = None
    """Cumulative since boot, over the physical interfaces (no loopback, bridge or veth)."""
    net_tx_bytes: int | None = None
    net_rx_rate: float | None = None
    net_tx_rate: float | None = None


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """Who holds memory on a GPU."""

    pid: int
    """On the host."""
    process: str
    memory: int | None
    """Bytes; None where the driver does not say."""
    container: str | None = None
    """The container's name, or its short id; None outside containers."""
    unit: str | None = None
    """The systemd unit."""
    server: str | None = None
    """The Triton server it belongs to, as in ``Sample.servers[].name``."""
    model: str | None = None
    """The model, where it can be told (a Python backend's stub says so on its command line)."""
    orphan: bool = False
    """True where the process's container is gone, or the process itself: memory held by nobody living."""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU, or one MIG device."""

    index: int
    uuid: str
    name: str | None = None
    state: str = "ok"
    """"ok", "lost" (fallen off the bus or in need of a reset), or "error"."""
    state_reason: str | None = None
    source: str = "nvml"
    """"nvml" or "nvidia-smi"."""
    mig: bool = False
    """True where MIG mode is on, or this is a MIG device: some figures are not to be had there."""
    parent: str | None = None
    """For a MIG device, the UUID of its GPU."""
    utilization_percent: float | None = None
    """Share of time in which a kernel ran: NVML's utilisation, not how full the GPU was."""
    memory_busy_percent: float | None = None
    """Share of time in which memory was read or written: not bandwidth."""
    memory_total: int | None = None
    memory_used: int | None = None
    memory_free: int | None = None
    memory_reserved: int | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    energy_j: float | None = None
    """Cumulative since the driver was loaded."""
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    throttle: tuple[str, ...] = ()
    """NVML's clock event reasons in force, in its own words: "SwPowerCap", "HwThermalSlowdown", ..."""
    dram_percent: float | None = None
    """DRAM throughput in percent of the peak. See ``dram_source``."""
    dram_gb_s: float | None = None
    """The same in 10^9 bytes per second; None on MIG, where the percent's base is not documented."""
    dram_peak_gb_s: float | None = None
    """Max memory clock x 2 x bus width / 8: the device's own figures, or a table's where it has none."""
    dram_peak_basis: str | None = None
    """What the peak rests on: the device's own clock and bus width, or "typical of a ..."."""
    dram_source: str | None = None
    """"gpm", "dcgm-exporter", or "memory busy": the last is a duty cycle and never fills ``dram_percent``."""
    sm_percent: float | None = None
    """GPM SM_UTIL."""
    tensor_percent: float | None = None
    """GPM ANY_TENSOR_UTIL."""
    pcie_rx_mib_s: float | None = None
    pcie_tx_mib_s: float | None = None
    ecc_uncorrected: int | None = None
    """Volatile, cumulative since the driver was loaded."""
    remapped_pending: bool | None = None
    remapped_failure: bool | None = None
    holders: tuple[GpuHolder, ...] = ()


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed requests by Triton's reason, from its metrics. Cumulative, or in the window."""

    rejected: int | None = None
    """Expired in the queue. A full queue and validation errors are not counted by Triton."""
    cancelled: int | None = None
    backend: int | None = None
    other: int | None = None


@dataclass(frozen=True, slots=True)
class ModelSample:
    """One version of one model on one server. Ready versions have statistics, others a state and a reason."""

    name: str
    version: str
    state: str
    """Triton's own: READY, UNAVAILABLE, LOADING, UNLOADING; UNKNOWN where it does not say."""
    reason: str | None = None
    backend: str | None = None
    max_batch_size: int | None = None
    scheduling: str | None = None
    """"dynamic_batching", "sequence_batching", "ensemble", or "default": in force, not on disk."""
    decoupled: bool | None = None
    in_flight_batching: bool | None = None
    """TensorRT-LLM, vLLM and their like: they batch inside the backend, Triton's batches mean nothing."""
    response_cache: bool | None = None
    # Cumulative, from the statistics API.
    requests: int | None = None
    """inference_stats.success.count"""
    failed: int | None = None
    """inference_stats.fail.count"""
    executions: int | None = None
    inferences: int | None = None
    cache_hits: int | None = None
    failures: Failures = field(default_factory=Failures)
    batches: Mapping[int, int] = field(default_factory=dict)
    """Executions by batch size, cumulative."""
    pending: int | None = None
    """Requests waiting now, from the metrics."""
    last_inference: float | None = None
    """Unix seconds; None before the first."""
    # In the window since the previous sample, or since the statistics were last readable.
    gap: str | None = None
    """Why this window has no figures: "reset: ...", "lines from the droplet were lost", ..."""
    rps: float | None = None
    """(requests + failed) per second."""
    inferences_per_s: float | None = None
    executions_per_s: float | None = None
    hit_rate: float | None = None
    """Percent: 1 - executions / (successes - cache hits + BACKEND failures). Where a batch was just being counted
    at the last window's edge, that window had none and this one covers it too: then it reaches further back."""
    mean_batch: float | None = None
    """Of the executions' own batch sizes, failed requests included."""
    fill_percent: float | None = None
    """mean_batch / max_batch_size"""
    error_percent: float | None = None
    window_failures: Failures = field(default_factory=Failures)
    window_batches: Mapping[int, int] = field(default_factory=dict)
    queue_ms: float | None = None
    """Mean per successful request, in the window; compute_* among those that were no cache hits."""
    compute_input_ms: float | None = None
    compute_infer_ms: float | None = None
    compute_output_ms: float | None = None
    request_ms: float | None = None
    # Since the server's start or the model's last reload: a live view has no past.
    average: Mapping[str, float | None] = field(default_factory=dict)
    """hit_rate, mean_batch, error_percent, queue_ms, compute_infer_ms, request_ms over all the counters."""
    p95_ms: float | None = None
    """From Triton's latency summaries, where they are on; never invented."""
    # What takes the hit rate's place for decoupled and in-flight batching models.
    responses_per_s: float | None = None
    first_response_ms: float | None = None
    """Mean time to the first response in the window: from the request's arrival by the backend's or Triton's
    histograms, otherwise from its execution's start by Triton's response statistics."""
    between_responses_ms: float | None = None
    running: float | None = None
    """Requests in the backend's own batch."""
    waiting: float | None = None
    kv_cache_percent: float | None = None
    tokens_per_s: float | None = None
    series: Mapping[str, float] = field(default_factory=dict)
    """Custom metrics of the backend, name and labels as Prometheus writes them."""


@dataclass(frozen=True, slots=True)
class ServerSample:
    """One Triton server."""

    name: str
    state: str
    """ready, not ready, starting, restarting, stopped, dead, restricted, unreachable."""
    reason: str | None = None
    how: str | None = None
    """"unit", "docker" or "process"."""
    unit: str | None = None
    container: str | None = None
    pid: int | None = None
    started: float | None = None
    """Unix seconds by the droplet's clock."""
    restarts: int | None = None
    version: str | None = None
    http: str | None = None
    """host:port, likewise grpc and metrics."""
    grpc: str | None = None
    metrics: str | None = None
    control_mode: str | None = None
    """--model-control-mode: "none" (Triton loads every model), "explicit" (those it is told to) or "poll"."""
    models: tuple[ModelSample, ...] = ()
    models_ready: int | None = None
    models_total: int | None = None
    rps: float | None = None
    """Sums over the models. Ensembles count beside the models they are made of, so they are left out here."""
    error_percent: float | None = None
    series: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """One droplet at one moment."""

    droplet: str
    time: float
    """Unix seconds by this side's clock, when the tick arrived."""
    seq: int
    """The tick's number in its stream."""
    stream: str
    """Changes when the stream starts anew."""
    interval: float | None
    """Seconds since the previous sample by the droplet's monotonic clock; None where there is none."""
    missed: int = 0
    """Ticks that the droplet took and could not send, or that were due and not taken, since the previous."""
    host: HostSample = field(default_factory=HostSample)
    gpus: tuple[GpuSample, ...] = ()
    driver_version: str | None = None
    gpu_source: str | None = None
    servers: tuple[ServerSample, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)
    clock_skew_s: float | None = None
    """The droplet's clock minus this side's at arrival, the line's delay included."""
