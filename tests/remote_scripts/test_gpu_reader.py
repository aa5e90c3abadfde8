from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from remote_scripts.call import Call
from remote_scripts.gpu import gpu_reader
from remote_scripts.gpu.dcgm_exporter import DcgmExporter
from remote_scripts.gpu.gpm import UNSUPPORTED
from remote_scripts.gpu.gpu_reader import GpuReader, Look
from remote_scripts.gpu.nvml import NvmlError, kernel_version, library_version
from remote_scripts.reading import Reading
from tests.remote_scripts.test_dcgm_exporter import Exporter, exporter

__all__ = ["exporter"]


class Source:
    """Stands in for NVML: what a tick finds is set by the test."""

    def __init__(self) -> None:
        self.reading = Reading({"source": "nvml"})
        self.failure: Exception | None = None
        self.lists: list[Any] = []
        self.closed = False

    def read(self, _: float, slow: bool) -> Reading:
        if self.failure is not None:
            raise self.failure
        if not slow:
            self.reading.held = {}
        return self.reading

    def processes_again(self, _: str) -> Any:
        return self.lists.pop(0)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    made = Source()
    monkeypatch.setattr(gpu_reader, "NvmlSource", lambda call, gpm: made)
    return made


def reader(root: Path) -> GpuReader:
    return GpuReader(Call({}, io.BytesIO(), root, [str(root)]), gpm=True)


def look(one: GpuReader, *, slow: bool = False, now: float = 1.0) -> Look:
    return one.read(now, slow, {})


def test_an_exporters_figure_takes_gpms_place(
    source: Source, exporter: Exporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu_reader, "DcgmExporter", lambda: DcgmExporter(exporter.port))
    for uuid in ("GPU-a", "MIG-1", "GPU-z"):
        source.reading.gpus[uuid] = {"index": 0, "state": "ok"}
        source.reading.reasons[uuid] = {"dram_percent": UNSUPPORTED, "sm_percent": UNSUPPORTED}
        source.reading.without_gpm.add(uuid)
    source.reading.instances["MIG-1"] = ("GPU-b", "1")
    seen = look(reader(tmp_path))
    assert seen.gpus is not None
    assert (seen.gpus["GPU-a"]["dram_percent"], seen.gpus["GPU-a"]["dram_source"]) == (42.137, "dcgm-exporter")
    assert seen.gpus["MIG-1"]["dram_percent"] == 25.0
    assert "dram_percent" not in seen.gpus["GPU-z"]
    assert "/gpus/GPU-a/dram_percent" not in seen.unavailable
    assert seen.unavailable["/gpus/GPU-a/sm_percent"] == UNSUPPORTED
    assert "does not export" in seen.unavailable["/gpus/GPU-z/dram_percent"]


def test_a_process_that_ended_between_list_and_look_is_no_orphan(source: Source, tmp_path: Path) -> None:
    source.reading.gpus["GPU-a"] = {"index": 0, "state": "ok"}
    source.reading.reasons["GPU-a"] = {}
    source.reading.held = {"GPU-a": [(77, 1000)]}
    source.lists = [[]]
    seen = look(reader(tmp_path), slow=True)
    assert seen.gpus is not None
    assert seen.gpus["GPU-a"]["holders"] == []
    source.reading.held = {"GPU-a": [(77, 1000)]}
    source.lists = [[(77, 1000)]]
    seen = look(reader(tmp_path), slow=True)
    assert seen.gpus is not None
    assert seen.gpus["GPU-a"]["holders"][0]["orphan"] is True


def test_a_fault_of_ours_is_a_reason_and_not_the_streams_end(source: Source, tmp_path: Path) -> None:
    source.failure = ZeroDivisionError("oops")
    one = reader(tmp_path)
    seen = look(one)
    assert seen.gpus is None
    assert seen.unavailable["/gpus"] == "reading the GPUs failed here: ZeroDivisionError: oops"
    source.failure = None
    assert look(one).gpus == {}


def test_a_failed_source_is_opened_again_after_a_while(source: Source, tmp_path: Path) -> None:
    one = reader(tmp_path)
    look(one, now=100.0)
    source.failure = NvmlError("gone", 1, elsewhere=False)
    assert look(one, now=101.0).unavailable["/gpus"] == "gone"
    source.failure = None
    assert look(one, now=102.0).unavailable["/gpus"] == "gone"
    assert look(one, now=110.0).gpus == {}


def test_an_nvidia_device_without_a_driver_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NvmlError("the NVIDIA driver is not installed", 12, elsewhere=True)

    monkeypatch.setattr(gpu_reader, "NvmlSource", refuse)
    device = tmp_path / "sys/bus/pci/devices/0000:19:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    assert look(reader(tmp_path)).unavailable["/gpus"].endswith("an NVIDIA device is on the PCI bus")
    (device / "vendor").write_text("0x1af4\n")
    assert look(reader(tmp_path)).unavailable["/gpus"] == "the NVIDIA driver is not installed"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 17 22:55:48 UTC 2024\n",
            "535.161.08",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (root@x)  Wed\n"
            "GCC version:  gcc version 13.3.0 \n",
            "580.82.07",
        ),
        ("", None),
        ("NVRM version: garbage\n", None),
    ],
)
def test_the_kernel_modules_version(tmp_path: Path, text: str, version: str | None) -> None:
    (tmp_path / "version").write_text(text)
    assert kernel_version(str(tmp_path / "version")) == version
    assert kernel_version(str(tmp_path / "none")) is None


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("7f00-7f01 r-xp 0 fe:00 9 /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.261.03\n", "535.261.03"),
        ("7f00-7f01 r-xp 0 fe:00 9 /usr/lib/libnvidia-ml.so.580.95.05 (deleted)\n", "580.95.05 (replaced on disk)"),
        ("7f00-7f01 r-xp 0 fe:00 9 /tmp/stub/libnvidia-ml.so.1\n", None),
        ("7f00-7f01 r-xp 0 fe:00 9 /usr/lib/libc.so.6\n", None),
    ],
)
def test_the_loaded_librarys_version(tmp_path: Path, line: str, version: str | None) -> None:
    (tmp_path / "maps").write_text(line)
    assert library_version(str(tmp_path / "maps")) == version
