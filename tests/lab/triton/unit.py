"""A Triton server as a systemd unit of a lab droplet.

    triton = install(machine, load=("echo",))
    triton.start()
    closed_loop(infer_target(triton.api.address, triton.api.http, "echo"), 100, 8)

Several servers on one droplet have a name, ports and a model repository each.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.lab.machine import Machine
from tests.lab.triton import repository, wheel
from tests.lab.triton.api import Api
from tests.lab.triton.options import Options

HOME = "/opt/tritonserver"
NO_NVML = "No library: it keeps the server's own DCGM, which hangs on the lab's NVML stub, from finding that.\n"
UNIT = """\
[Unit]
Description=NVIDIA Triton Inference Server ({name})
After=network.target

[Service]
Environment=LD_LIBRARY_PATH={home}/lib
ExecStart={command}
Restart=on-failure
RestartSec=1
TimeoutStopSec=45

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class TritonUnit:
    """One server's unit: how it is started, and the actions on it."""

    machine: Machine
    name: str
    options: Options

    @property
    def api(self) -> Api:
        """Its ports, as this side reaches them."""
        return Api(self.machine.address, self.options.http, self.options.metrics)

    @property
    def models(self) -> Path:
        """Its model repository, as this side sees it: for ``repository.add_model``."""
        return self.machine.root / self.options.repository.lstrip("/")

    def configure(self, options: Options) -> TritonUnit:
        """Rewrite the unit; it takes effect with the next start."""
        self.machine.write(f"/etc/systemd/system/{self.name}.service", unit_text(self.name, options))
        self.machine.run(["systemctl", "daemon-reload"])
        return replace(self, options=options)

    def start(self, wait: bool = True, timeout_s: float = 60.0) -> None:
        """Start it, and wait until it is ready unless told not to."""
        self._systemctl("start")
        if wait:
            self.api.wait_ready(timeout_s)

    def stop(self) -> None:
        """Stop it and wait for its end."""
        self._systemctl("stop")

    def restart(self, wait: bool = True, timeout_s: float = 60.0) -> None:
        """Restart it, and wait until it is ready unless told not to."""
        self._systemctl("restart")
        if wait:
            self.api.wait_ready(timeout_s)

    def kill(self, signal: str = "KILL") -> None:
        """Kill the server and its stubs, as a crash does; systemd starts it again."""
        self.machine.run(["systemctl", "kill", f"--signal={signal}", self.name])

    def remove(self) -> None:
        """Stop it and take its unit away."""
        self.machine.run(["systemctl", "disable", "--now", "--quiet", self.name], timeout=60)
        self.machine.run(["rm", "-f", f"/etc/systemd/system/{self.name}.service"])
        self.machine.run(["systemctl", "daemon-reload"])
        self.machine.run(["systemctl", "reset-failed", self.name], check=False)

    def pid(self) -> int:
        """The server's process id inside the droplet; 0 where it does not run."""
        shown = self.machine.run(["systemctl", "show", "--property=MainPID", "--value", self.name])
        return int(shown.stdout)

    def exit_status(self) -> int:
        """The exit status of its last run."""
        shown = self.machine.run(["systemctl", "show", "--property=ExecMainStatus", "--value", self.name])
        return int(shown.stdout)

    def touch(self, model: str) -> None:
        """Make a model's files newer: without that a load of a loaded model changes nothing and answers 200.

        A newer config.pbtxt with the same content is not enough: 2.51.0 then says that it loaded, and does not.
        """
        for file in (self.models / model / "1").iterdir():
            file.touch()

    def journal(self) -> str:
        """What it wrote."""
        shown = self.machine.run(["journalctl", "--no-pager", "--output=cat", f"--unit={self.name}"])
        return shown.stdout.decode(errors="replace")

    def _systemctl(self, verb: str) -> None:
        self.machine.run(["systemctl", verb, self.name], timeout=90)


def install(
    machine: Machine,
    options: Options | None = None,
    name: str = "triton",
    models: Iterable[str] = repository.NAMES,
) -> TritonUnit:
    """Put the server, a model repository and a unit onto a droplet that is up; nothing is started.

    Args:
        machine: The droplet.
        options: How the server is started.
        name: The unit's name; another server on the same droplet needs other ports and another repository, too.
        models: Which of the lab's models its repository holds.
    """
    options = options or Options()
    lay_out(machine)
    unit = TritonUnit(machine, name, options)
    repository.add_models(unit.models, models)
    return unit.configure(options)


def lay_out(machine: Machine) -> None:
    """Put the server into ``HOME``, with the stub for the droplet's Python; quick where it is there already."""
    home = machine.root / HOME.lstrip("/")
    if not (home / "bin/tritonserver").exists():
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", f"{wheel.layout()}/.", str(home)], check=True, timeout=120)
        wheel.add_stub(home, python_of(machine))
        wheel.use_system_python(home, python_of(machine))
        (home / "lib/libnvidia-ml.so.1").write_text(NO_NVML)
    wheel.add_backends(home)


def python_of(machine: Machine) -> str:
    """The version of the droplet's libpython, such as "3.11"."""
    found = sorted((machine.root / "usr/lib/x86_64-linux-gnu").glob("libpython3.*.so.1.0"))
    if not found:
        raise wheel.LabTritonError(f"{machine.name} has no libpython3: its root was built without it")
    return found[-1].name.removeprefix("libpython").removesuffix(".so.1.0")


def unit_text(name: str, options: Options) -> str:
    """The unit file."""
    return UNIT.format(name=name, home=HOME, command=shlex.join(options.argv(HOME)))


def start_by_hand(machine: Machine, options: Options) -> Api:
    """Start a server the way a person does in a shell and forgets: no unit, ``nohup`` and ``&``.

    It ends with the droplet, or by ``kill``.
    """
    lay_out(machine)
    command = shlex.join(options.argv(HOME))
    script = f"LD_LIBRARY_PATH={HOME}/lib nohup setsid {command} </dev/null >/root/triton.log 2>&1 &"
    machine.run(["sh", "-c", script])
    return Api(machine.address, options.http, options.metrics)
