"""A droplet's /proc, units and Docker store as a folder of files that a test writes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from remote_scripts.call import Call

UNIT_CGROUP = "0::/system.slice/{}\n"
SESSION_CGROUP = "0::/user.slice/user-0.slice/session-3.scope\n"


class Lines:
    """Takes what a script sends."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.lines.append(json.loads(data))

    def flush(self) -> None:
        return


class FakeDroplet:
    """Files under ``root``, and tools that are scripts in ``root/bin``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sink = Lines()
        self.write("/proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nbtime 1700000000\n")
        (root / "bin").mkdir()

    def call(self, **request: Any) -> Call:
        return Call(request, self.sink, self.root, [str(self.root / "bin"), *os.environ["PATH"].split(":")])

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def tool(self, name: str, script: str) -> None:
        file = self.write(f"/bin/{name}", f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def process(
        self,
        pid: int,
        *arguments: str,
        comm: str = "tritonserver",
        parent: int = 1,
        start: int = 1000,
        state: str = "S",
        cgroup: str = SESSION_CGROUP,
        net: int = 1,
    ) -> None:
        """A process. ``net`` tells network namespaces apart; /proc/self is in the first."""
        self.write(f"/proc/{pid}/comm", f"{comm}\n")
        self.write(f"/proc/{pid}/cmdline", "\0".join(arguments) + "\0" if arguments else "")
        fields = " ".join("0" for _ in range(17))
        self.write(f"/proc/{pid}/stat", f"{pid} ({comm}) {state} {parent} {fields} {start} 0 0\n")
        self.write(f"/proc/{pid}/cgroup", cgroup)
        self.namespace(pid, net)
        if not (self.root / "proc/self").exists():
            self.namespace("self", 1)

    def namespace(self, pid: int | str, number: int) -> None:
        shared = self.write(f"/namespaces/{number}", "")
        for kind in ("net", "pid"):
            link = self.root / f"proc/{pid}/ns/{kind}"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            os.link(shared if kind == "net" else self.write("/namespaces/pid", ""), link)

    def end(self, pid: int) -> None:
        folder = self.root / f"proc/{pid}"
        for file in sorted(folder.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        folder.rmdir()

    def triton(self, pid: int, *flags: str, **more: Any) -> None:
        self.process(pid, "/opt/tritonserver/bin/tritonserver", "--model-repository=/models", *flags, **more)

    def unit(self, name: str, *lines: str) -> None:
        self.write(f"/etc/systemd/system/{name}", "\n".join(["[Service]", *lines]) + "\n")

    def container(self, identifier: str, name: str, ports: Sequence[tuple[int, str]] = (), **state: Any) -> None:
        bound = {
            f"{inside}/tcp": [{"HostIp": outside.rpartition(":")[0], "HostPort": outside.rpartition(":")[2]}]
            for inside, outside in ports
        }
        config = {
            "Name": f"/{name}",
            "Path": "tritonserver",
            "Args": [],
            "RestartCount": state.pop("restarts", 0),
            "State": {"Running": True, "ExitCode": 0, **state},
            "NetworkSettings": {"Ports": bound},
        }
        folder = f"/var/lib/docker/containers/{identifier}"
        self.write(f"{folder}/config.v2.json", json.dumps(config))
        self.write(f"{folder}/hostconfig.json", json.dumps({"RestartPolicy": {"Name": "unless-stopped"}}))
