"""Compiles the stub, once per source and driver branch."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from enum import Enum
from pathlib import Path

from tests.lab.cache import cache_folder

LIBRARY = "libnvidia-ml.so.1"
SMI = "nvidia-smi"
SCENARIO = "nvml.scenario"
SOURCES = ("scenario.h", "stub.c", "mig_gpm.c", "nvidia_smi.c")
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O2")


class Driver(Enum):
    """The driver branch whose library it is: which functions there are, and the process struct's layout."""

    R470 = 470
    """No GPM, no memory v2, no process v3, no event reasons."""
    R535 = 535
    """GPM, and a process struct with a field more than before and after."""
    R580 = 580


class NoCompilerError(RuntimeError):
    """There is no C compiler."""


def build(folder: Path, driver: Driver = Driver.R580) -> Path:
    """Put the library and nvidia-smi into ``folder``, compiled or from the lab's cache; returns ``folder``.

    Raises:
        NoCompilerError: cc is missing and there is nothing in the cache.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = _compiled(driver)
    for name in (LIBRARY, SMI):
        scratch = folder / f"{name}.new"
        shutil.copy2(made / name, scratch)
        scratch.replace(folder / name)
    return folder


def _compiled(driver: Driver) -> Path:
    here = Path(__file__).parent
    digest = hashlib.sha256(b"".join((here / name).read_bytes() for name in SOURCES)).hexdigest()[:16]
    target = cache_folder() / f"nvml-{driver.value}-{digest}"
    if target.is_dir():
        return target
    cc = shutil.which("cc")
    if cc is None:
        raise NoCompilerError(
            "the NVML stub is compiled on first use and there is no cc: apt-get install gcc libc6-dev"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        common = [cc, *FLAGS, f"-DDRIVER={driver.value}"]
        _run(
            [
                *common,
                "-shared",
                "-fPIC",
                "-o",
                str(made / LIBRARY),
                str(here / "stub.c"),
                "-ldl",
                "-lpthread",
                "-lm",
            ]
        )
        _run([*common, "-o", str(made / SMI), str(here / "nvidia_smi.c"), "-lpthread"])
        if not target.is_dir():
            made.rename(target)
    return target


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
