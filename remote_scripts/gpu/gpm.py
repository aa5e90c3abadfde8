"""DRAM throughput and its like from NVML's GPU performance monitoring (GPM): Hopper and newer.

A figure is what happened between two samples of a device. GPM needs no exclusive access and disturbs no profiler
(NVIDIA/DCGM issue 62). Whether a device has it is asked three times: by symbol, by the support call, and by the
samples themselves, since a vGPU guest answers the second wrongly (NVIDIA/dcgm-exporter pull 701).
"""

from __future__ import annotations

import ctypes
from typing import Any

from remote_scripts.gpu.nvml import FOR_GOOD, FUNCTION_NOT_FOUND, LOST, NO_PERMISSION, UNINITIALIZED, Nvml
from remote_scripts.gpu.nvml_query import Figures, Reasons

SHORTEST = 0.105
"""Seconds between two samples: nvml.h asks for more than 100 ms."""
LONGEST = 120.0
"""Seconds: after a longer pause (a suspended machine) the older sample is thrown away."""

DRAM = "dram_percent"
PERCENTS = ((2, "sm_percent"), (5, "tensor_percent"), (10, DRAM))
RATES = ((20, "pcie_tx_mib_s"), (21, "pcie_rx_mib_s"))
"""GPM's metric ids (nvml.h NVML_GPM_METRIC_*): percent of the peak, and MiB per second."""
KEYS = tuple(key for _, key in PERCENTS + RATES)

UNSUPPORTED = "the GPU does not support GPM (Hopper or newer does)"
FIRST = "the first figure needs two samples"
VGPU = "this is a vGPU guest: GPM's counters belong to the whole GPU on its host"
OFF = "GPM is switched off in the request"
_NO_LINK = {key: "a MIG device has no PCIe link of its own" for _, key in RATES}


class Gpm:
    """The samples of one GPU, or of one MIG device.

    Attributes:
        refused: why there will be no figures in this session; None while there may be.
    """

    __slots__ = (
        "_device",
        "_get",
        "_instance",
        "_last",
        "_newer",
        "_nvml",
        "_older",
        "_request",
        "_rows",
        "_sampled",
        "refused",
    )

    def __init__(self, nvml: Nvml, device: Any, instance: int | None = None) -> None:
        """Asks the device for support; takes no sample yet.

        Args:
            nvml: the library.
            device: the handle of a whole GPU.
            instance: the GPU instance of a MIG device on it. Its percent's base is not documented, and a slice
                has no PCIe link of its own.
        """
        self._nvml = nvml
        self._device = device
        self._instance = instance
        self._older: Any = None
        self._newer: Any = None
        self._sampled: float | None = None
        self._last: tuple[Figures, Reasons] = ({}, {})
        self.refused = self._support()
        if self.refused is None:
            self._prepare(PERCENTS if instance is not None else PERCENTS + RATES)

    def read(self, now: float, figures: Figures, reasons: Reasons) -> int:
        """Takes a sample and the figures since the one before.

        Args:
            now: a monotonic clock, seconds.
            figures: takes the figures.
            reasons: takes the reason of each figure that is not to be had.

        Returns:
            NVML's code where it concerns the whole GPU, 0 otherwise.
        """
        if self.refused is None and (self._sampled is None or now - self._sampled >= SHORTEST):
            code = self._sample(now)
            if code in LOST or code == UNINITIALIZED:
                return code
        if self.refused is not None:
            reasons.update(dict.fromkeys(KEYS, self.refused))
            return 0
        for key in KEYS:
            reasons.pop(key, None)
        reasons.update(self._last[1])
        figures.update(self._last[0])
        return 0

    def close(self) -> None:
        """Gives the samples back to the library. NVML must still be running."""
        free = self._nvml.function("nvmlGpmSampleFree")
        for sample in (self._older, self._newer):
            if sample is not None and free is not None:
                free(sample)
        self._older = self._newer = None

    def _support(self) -> str | None:
        query = self._nvml.function("nvmlGpmQueryDeviceSupport")
        if query is None:
            return "this driver's NVML has no GPM (525 or newer has it)"
        mode = ctypes.c_ulonglong()
        ask = self._nvml.function("nvmlDeviceGetVirtualizationMode")
        if ask is not None and ask(self._device, ctypes.byref(mode)) == 0 and mode.value == 2:
            return VGPU
        support = self._nvml.bindings.c_nvmlGpmSupport_t()
        support.version = self._nvml.bindings.NVML_GPM_SUPPORT_VERSION
        code = query(self._device, ctypes.byref(support))
        if code == NO_PERMISSION:
            return self._nvml.reason(code)
        if code and code not in FOR_GOOD:
            return f"GPM does not say whether this GPU has it: {self._nvml.reason(code)}"
        return UNSUPPORTED if code or not support.isSupportedDevice else None

    def _prepare(self, metrics: tuple[tuple[int, str], ...]) -> None:
        """Allocates the two samples and the one request that is used for life."""
        bindings = self._nvml.bindings
        allocate = self._nvml.function("nvmlGpmSampleAlloc")
        get = self._nvml.function("nvmlGpmMetricsGet")
        if allocate is None or get is None:
            self.refused = self._nvml.reason(FUNCTION_NOT_FOUND)
            return
        samples = []
        for _ in range(2):
            sample = bindings.c_nvmlGpmSample_t()
            code = allocate(ctypes.byref(sample))
            if code:
                self.refused = f"GPM cannot hold a sample: {self._nvml.reason(code)}"
                return
            samples.append(sample)
        self._older, self._newer = samples
        self._get = get
        self._request = bindings.c_nvmlGpmMetricsGet_t()
        self._request.version = bindings.NVML_GPM_METRICS_GET_VERSION
        self._request.numMetrics = len(metrics)
        self._rows = []
        for index, (metric, key) in enumerate(metrics):
            row = self._request.metrics[index]
            row.metricId = metric
            self._rows.append((key, row))
        self._last = ({}, self._without(FIRST))

    def _without(self, reason: str) -> Reasons:
        reasons = dict.fromkeys(KEYS, reason)
        if self._instance is not None:
            reasons.update(_NO_LINK)
        return reasons

    def _sample(self, now: float) -> int:
        """Fills the newer sample and, where there is an older one, the figures between them."""
        if self._instance is None:
            take = self._nvml.function("nvmlGpmSampleGet")
            code = FUNCTION_NOT_FOUND if take is None else take(self._device, self._newer)
        else:
            take = self._nvml.function("nvmlGpmMigSampleGet")
            code = FUNCTION_NOT_FOUND if take is None else take(self._device, self._instance, self._newer)
        if code:
            # The older sample stays: the next one that succeeds measures from there.
            self._fail(code)
            return code
        before, self._sampled = self._sampled, now
        if before is not None and now - before <= LONGEST:
            self._compute()
        else:
            self._last = ({}, self._without(FIRST))
        self._older, self._newer = self._newer, self._older
        return 0

    def _compute(self) -> None:
        request = self._request
        request.sample1, request.sample2 = self._older, self._newer
        code = self._get(ctypes.byref(request))
        if code:
            self._fail(code)
            return
        figures: Figures = {}
        reasons: Reasons = {} if self._instance is None else dict(_NO_LINK)
        for key, row in self._rows:
            value = row.value
            if row.nvmlReturn:
                reasons[key] = f"GPM: {self._nvml.reason(row.nvmlReturn)}"
            elif not 0.0 <= value < 1e9 or (value > 100.5 and key.endswith("_percent")):
                # NaN is GPM's word for "no data", and fails every comparison.
                reasons[key] = "GPM has no data for the last interval" if value != value else f"GPM says {value:g}"
            else:
                figures[key] = round(value, 3)
        if DRAM in figures:
            figures["dram_source"] = "gpm"
        self._last = (figures, reasons)

    def _fail(self, code: int) -> None:
        if code in FOR_GOOD:
            # The support call said yes and the device says no: the live probe decides.
            self.refused = UNSUPPORTED
        elif code not in LOST:
            self._last = ({}, self._without(f"GPM: {self._nvml.reason(code)}"))
