"""The stub on a lab droplet, where a driver's library and nvidia-smi would lie."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.lab.machine import Machine
from tests.lab.nvml.build import LIBRARY, SCENARIO, SMI, Driver, build
from tests.lab.nvml.scenario import Scenario

LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def install(
    machine: Machine, scenario: Scenario, driver: Driver = Driver.R580, library: bool = True, smi: bool = True
) -> None:
    """Give a droplet GPUs.

    Args:
        machine: The droplet.
        scenario: Its GPUs, until ``set_scenario`` says otherwise.
        driver: The branch that the library is of.
        library: False for a droplet with nvidia-smi alone.
        smi: False for one without nvidia-smi.
    """
    remove(machine)
    set_scenario(machine, scenario)
    with tempfile.TemporaryDirectory() as folder:
        made = build(Path(folder), driver)
        if library:
            machine.write(f"{LIBRARIES}/{LIBRARY}", (made / LIBRARY).read_bytes(), 0o755)
        if smi:
            machine.write(f"/usr/bin/{SMI}", (made / SMI).read_bytes(), 0o755)


def set_scenario(machine: Machine, scenario: Scenario) -> None:
    """Change a droplet's GPUs from the next NVML call on, in one step."""
    machine.write(f"{LIBRARIES}/{SCENARIO}.new", scenario.text())
    machine.run(["mv", f"{LIBRARIES}/{SCENARIO}.new", f"{LIBRARIES}/{SCENARIO}"])


def remove(machine: Machine) -> None:
    """Take the GPUs away: a droplet without a driver."""
    machine.run(["rm", "-f", f"{LIBRARIES}/{LIBRARY}", f"{LIBRARIES}/{SCENARIO}", f"/usr/bin/{SMI}"])
