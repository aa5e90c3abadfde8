"""The GPUs, by the best way there is: NVML, else nvidia-smi, else the reason why neither.

DRAM throughput by GPM, else by a DCGM exporter that already runs, else the reason: how long the memory was busy is
another thing, and stands under its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

from remote_scripts.call import Call
from remote_scripts.files import cut, pointer, read_text
from remote_scripts.gpu.dcgm_exporter import DcgmExporter
from remote_scripts.gpu.gpm import DRAM
from remote_scripts.gpu.holders import Holders
from remote_scripts.gpu.nvidia_smi import SmiSource
from remote_scripts.gpu.nvml import LIBRARY_NOT_FOUND, MISMATCH, NvmlError, kernel_version, library_version
from remote_scripts.gpu.nvml_query import Figures, Reasons
from remote_scripts.gpu.nvml_source import NvmlSource
from remote_scripts.reading import MAX_GPUS, Reading

RETRY = 8.0
"""Seconds until what could not be started is tried again."""
NVIDIA = "0x10de"
"""NVIDIA's PCI vendor id."""
DRIVER, GPUS = "/driver", "/gpus"
_DRIVER_REASONS = (
    ("version", "the driver does not say"),
    ("cuda", "the driver does not say"),
    ("kernel_version", "/proc/driver/nvidia/version does not say"),
)
LATER = "it is read every tenth tick"


class Look:
    """One tick's answer.

    Attributes:
        driver: the ``driver`` branch, or None.
        gpus: the ``gpus`` branch, or None.
        unavailable: JSON pointer to reason.
    """

    __slots__ = ("driver", "gpus", "unavailable")

    def __init__(
        self, driver: Figures | None, gpus: dict[str, Figures] | None, unavailable: dict[str, str]
    ) -> None:
        self.driver = driver
        self.gpus = gpus
        self.unavailable = unavailable


class GpuReader:
    """Finds the way and takes it at every tick. Used from one thread; may block where the driver does."""

    def __init__(self, call: Call, *, gpm: bool) -> None:
        self._call = call
        self._gpm = gpm
        self._source: NvmlSource | SmiSource | None = None
        self._retry_at: float | None = None
        self._refusal = Look(None, None, {})
        self._exporter = DcgmExporter()
        self._holders = Holders(call)
        self._held: dict[str, list[dict[str, Any]]] = {}
        self._held_reasons: dict[str, dict[str, str]] = {}

    def read(self, now: float, slow: bool, servers: Mapping[int, str]) -> Look:
        """One tick. Never raises.

        Args:
            now: a monotonic clock, seconds: what is tried again after a while goes by it.
            slow: read what changes slowly, too.
            servers: process id of each Triton server to the server's name.
        """
        try:
            return self._read(now, slow, servers)
        except Exception as error:  # the stream goes on without GPUs, and says why
            reason = cut(f"reading the GPUs failed here: {type(error).__name__}: {error}")
            return Look(None, None, {DRIVER: reason, GPUS: reason})

    def close(self) -> None:
        """Shuts down what was started."""
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def _read(self, now: float, slow: bool, servers: Mapping[int, str]) -> Look:
        if self._source is None:
            if self._retry_at is not None and now < self._retry_at:
                return self._refusal
            self._open(now)
            slow = True
        source = self._source
        if source is None:
            return self._refusal
        try:
            reading = source.read(now, slow)
        except NvmlError as error:
            self._refuse(error, now)
            return self._refusal
        if (
            isinstance(source, SmiSource)
            and not reading.gpus
            and self._retry_at is not None
            and now >= self._retry_at
        ):
            # nvidia-smi has nothing either: NVML may have become usable since.
            self.close()
        if reading.held:
            self._name_holders(source, reading, servers)
        return self._compose(reading)

    def _open(self, now: float) -> None:
        self._retry_at = now + RETRY
        try:
            self._source = NvmlSource(self._call, gpm=self._gpm)
        except NvmlError as error:
            program = self._call.tool("nvidia-smi") if error.elsewhere else None
            if program is not None:
                self._source = SmiSource(self._call, program)
            else:
                self._refuse(error, now)

    def _refuse(self, error: NvmlError, now: float) -> None:
        self._source = None
        self._retry_at = now + RETRY
        reason = str(error)
        if error.code == LIBRARY_NOT_FOUND:
            reason += ", though an NVIDIA device is on the PCI bus" if self._on_bus() else ""
        driver: Figures | None = None
        if error.code == MISMATCH:
            driver = {"source": "nvml"}
            kernel = kernel_version(str(self._call.resolve("/proc/driver/nvidia/version")))
            library = library_version()
            if library is not None:
                driver["version"] = library
            if kernel is not None:
                driver["kernel_version"] = kernel
            reason += (
                f": the loaded kernel module is {kernel or 'unknown'}, the library {library or 'unknown'};"
                " reload the module or reboot"
            )
        reason = cut(reason)
        if driver is None:
            self._refusal = Look(None, None, {DRIVER: reason, GPUS: reason})
            return
        missing = {f"{DRIVER}/{key}": reason for key, _ in _DRIVER_REASONS if key not in driver}
        self._refusal = Look(driver, None, {GPUS: reason, **missing})

    def _on_bus(self) -> bool:
        try:
            devices = list(self._call.resolve("/sys/bus/pci/devices").iterdir())[:4096]
        except OSError:
            return False
        return any(self._vendor(str(device / "vendor")) == NVIDIA for device in devices)

    def _vendor(self, path: str) -> str:
        try:
            return read_text(path, 64).strip()
        except OSError:
            return ""

    def _name_holders(self, source: NvmlSource | SmiSource, reading: Reading, servers: Mapping[int, str]) -> None:
        lists = {uuid: rows for uuid, rows in reading.held.items() if not isinstance(rows, str)}
        for uuid in self._holders.gone(lists):
            # Ended between the list and the look at it, or truly gone: a second list tells.
            again = source.processes_again(uuid)
            if not isinstance(again, str):
                lists[uuid] = again
        self._held, by_path = self._holders.read(lists, servers)
        self._held_reasons = {}
        for uuid, rows in reading.held.items():
            if isinstance(rows, str):
                self._held_reasons[uuid] = {"holders": rows}
        for (uuid, path), reason in by_path.items():
            self._held_reasons.setdefault(uuid, {})[path] = reason

    def _compose(self, reading: Reading) -> Look:
        unavailable: dict[str, str] = {}
        for key, reason in _DRIVER_REASONS:
            if key not in reading.driver:
                unavailable[f"{DRIVER}/{key}"] = reason
        if reading.left_out:
            unavailable[pointer("gpus", f"beyond {MAX_GPUS}")] = f"{reading.left_out} more are left out"
        if reading.reason is not None:
            unavailable[GPUS] = reading.reason
            return Look(reading.driver, None, unavailable)
        for uuid, figures in reading.gpus.items():
            place = pointer("gpus", uuid)
            reasons = reading.reasons[uuid]
            whole = reasons.get("")
            if whole is not None:
                unavailable[place] = whole
                continue
            dram = self._add_dram(reading, uuid, figures, reasons) if uuid in reading.without_gpm else None
            for key, reason in reasons.items():
                unavailable[f"{place}/{key}"] = reason
            if dram is not None:
                unavailable[f"{place}/{DRAM}"] = dram
            elif DRAM in figures:
                unavailable.pop(f"{place}/{DRAM}", None)
            self._add_holders(uuid, place, figures, unavailable)
        return Look(reading.driver, reading.gpus, unavailable)

    def _add_dram(self, reading: Reading, uuid: str, figures: Figures, reasons: Reasons) -> str | None:
        """DRAM activity by the exporter; the reason where it has none."""
        percents, why = self._exporter.read(monotonic())
        percent = percents.get(reading.instances.get(uuid, (uuid, "")))
        if percent is None:
            return cut(f"{reasons.get(DRAM, 'GPM does not tell')}, and {why}")
        figures[DRAM] = percent
        figures["dram_source"] = "dcgm-exporter"
        return None

    def _add_holders(self, uuid: str, place: str, figures: Figures, unavailable: dict[str, str]) -> None:
        if uuid in self._held:
            figures["holders"] = self._held[uuid]
        elif uuid not in self._held_reasons:
            unavailable[f"{place}/holders"] = LATER
        for path, reason in self._held_reasons.get(uuid, {}).items():
            unavailable[f"{place}/{path}"] = reason
