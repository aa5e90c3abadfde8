"""The lab's GPUs: a stub of NVML's library and of nvidia-smi, scripted by a file that is read again at each call.

    build(folder)                            -> folder/libnvidia-ml.so.1 and folder/nvidia-smi
    machines.LOST.write(folder / SCENARIO)   -> from now on, the fourth GPU is lost

A process sees them with LD_LIBRARY_PATH=folder and folder on its PATH.
"""

from tests.lab.cc import NoCompilerError
from tests.lab.nvml.build import LIBRARY, SCENARIO, SMI, Driver, build
from tests.lab.nvml.install import install, remove, set_scenario
from tests.lab.nvml.scenario import Gpu, Mig, Scenario

__all__ = [
    "LIBRARY",
    "SCENARIO",
    "SMI",
    "Driver",
    "Gpu",
    "Mig",
    "NoCompilerError",
    "Scenario",
    "build",
    "install",
    "remove",
    "set_scenario",
]
