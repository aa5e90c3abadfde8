"""Compiles the stub, once per source and driver branch."""

from __future__ import annotations

import shutil
from enum import Enum
from pathlib import Path

from tests.lab.cc import compiled

LIBRARY = "libnvidia-ml.so.1"
SMI = "nvidia-smi"
SCENARIO = "nvml.scenario"
HERE = Path(__file__).parent
SOURCES = ("scenario.h", "stub.c", "mig_gpm.c", "nvidia_smi.c")


class Driver(Enum):
    """The driver branch whose library it is: which functions there are, and the process struct's layout."""

    R470 = 470
    """No GPM, no memory v2, no process v3, no event reasons."""
    R535 = 535
    """GPM, and a process struct with a field more than before and after."""
    R580 = 580


def build(folder: Path, driver: Driver = Driver.R580) -> Path:
    """Put the library and nvidia-smi into ``folder``, compiled or from the lab's cache; returns ``folder``.

    Raises:
        tests.lab.cc.NoCompilerError: cc is missing and there is nothing in the cache.
    """
    folder.mkdir(parents=True, exist_ok=True)
    common = (f"-DDRIVER={driver.value}", "-Wno-unused-function")
    targets = {
        LIBRARY: (*common, "-shared", "-fPIC", str(HERE / "stub.c"), "-ldl", "-lpthread", "-lm"),
        SMI: (*common, str(HERE / "nvidia_smi.c"), "-lpthread"),
    }
    made = compiled(f"nvml-{driver.value}", [HERE / name for name in SOURCES], targets)
    for name in targets:
        scratch = folder / f"{name}.new"
        shutil.copy2(made / name, scratch)
        scratch.replace(folder / name)
    return folder
