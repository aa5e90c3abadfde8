from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.remote_scripts.fake_droplet import FakeDroplet
from tests.remote_scripts.replayed_triton import replayed
from tests.remote_scripts.scripted_server import respond

SCRIPT = Path(__file__).parents[2] / "remote_scripts" / "fallback.sh"
MARK = b'\x01droplet-console/1 {"hello":1,"sh":true}\n'
SHELLS = [
    pytest.param(shell, marks=pytest.mark.skipif(shutil.which(shell[0]) is None, reason=f"no {shell[0]} here"))
    for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"])
]
NVIDIA_SMI = """\
0, GPU-5ad7, NVIDIA H100 80GB HBM3, 45, 12, 81559, 40000, 41559, 51, 312.45, 700.00, 1980, 2619, 570.86.10
1, GPU-9c1e, NVIDIA H100 80GB HBM3, [N/A], [N/A], 81559, 10, 81549, 30, [Unknown Error], 700.00, 345, 5, 570.86.10
"""
TOOLS = ("cat", "cut", "date", "df", "head", "kill", "printf", "sed", "sleep", "tail", "tr", "uname", "timeout")


class Droplet(FakeDroplet):
    """Whose tools are those of ``TOOLS`` and what a test adds."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for name in TOOLS:
            self.link(name)
        self.write("/proc/uptime", "123.45 400.00\n")
        self.write("/proc/loadavg", "0.52 0.58 0.59 1/389 1234\n")
        self.write("/proc/sys/kernel/hostname", 'we"ird\x1b[31m\n')
        self.write("/proc/sys/kernel/random/boot_id", "ba1008e2\n")
        self.write("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 40 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n")
        self.write(
            "/proc/diskstats", " 8 0 sda 1 2 30 4 5 6 70 8\n 8 1 sda1 1 2 30 4 5 6 70 8\n 7 0 loop0 1 2 9 4 5 6 9\n"
        )
        self.write("/sys/block/sda/size", "1")
        self.write("/proc/net/dev", "h\nh\n  eth0: 100 0 0 0 0 0 0 0 200 0\n    lo: 7 0 0 0 0 0 0 0 7 0\n")
        self.write("/sys/class/net/eth0/device", "")

    def link(self, name: str) -> None:
        found = shutil.which(name)
        if found is not None:
            (self.root / "bin" / name).symlink_to(found)

    def one_tick(self, shell: list[str]) -> dict[str, Any]:
        with self.running(shell) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == MARK
            line: dict[str, Any] = json.loads(process.stdout.readline())
            return line

    @contextmanager
    def running(self, shell: list[str], *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        program = shutil.which(shell[0])
        assert program is not None
        process = subprocess.Popen(
            [program, *shell[1:], "-c", SCRIPT.read_text(), "droplet-console", *(arguments or ("telemetry", "1"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": str(self.root / "bin"), "DROPLET_ROOT": str(self.root)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(10)
            process.stdout.close()


@pytest.fixture
def droplet(tmp_path: Path) -> Droplet:
    return Droplet(tmp_path)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_host_from_proc(droplet: Droplet, shell: list[str]) -> None:
    line = droplet.one_tick(shell)
    assert (line["seq"], line["full"], line["mono"]) == (0, True, 123.45)
    assert abs(line["time"] - time.time()) < 60
    host = line["doc"]["host"]
    assert host["hostname"] == 'we"ird[31m'
    assert (host["boot_id"], host["load1"], host["booted"]) == ("ba1008e2", 0.52, 1700000000)
    assert host["cpu"] == {"cores": 1, "user": 0.03, "system": 0.16, "iowait": 0.05, "steal": 0.08, "idle": 0.04}
    assert host["memory"] == {"total": 102400, "available": 40960, "swap_total": 10240, "swap_used": 6144}
    assert host["io"] == {"read": 30 * 512, "write": 70 * 512}
    assert host["net"] == {"rx": 100, "tx": 200}
    assert host["disk"]["total"] > host["disk"]["free"] > 0
    assert line["doc"]["gpus"] == {}
    assert line["doc"]["unavailable"]["/gpus"] == (
        "nvidia-smi is not there; it takes Python 3.10 or newer on the droplet, and there is none"
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_a_container_has_no_physical_interface_but_a_default_route(droplet: Droplet, shell: list[str]) -> None:
    (droplet.root / "sys/class/net/eth0/device").unlink()
    assert "net" not in droplet.one_tick(shell)["doc"]["host"]
    routes = "Iface\tDestination\tGateway\nlo\t0000007F\t00000000\neth0\t00000000\t0102000A\n"
    droplet.write("/proc/net/route", routes)
    assert droplet.one_tick(shell)["doc"]["host"]["net"] == {"rx": 100, "tx": 200}


@pytest.mark.parametrize("shell", SHELLS)
def test_why_no_python_does_it_is_told(droplet: Droplet, shell: list[str]) -> None:
    why = 'its python3 does not start: "\\x" $(exit) \x1b[31m'
    with droplet.running(shell, "telemetry", "1", why) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == MARK
        reasons = json.loads(process.stdout.readline())["doc"]["unavailable"]
    assert 'its python3 does not start: "\\x" $(exit) [31m' in reasons["/gpus"]


@pytest.mark.parametrize("shell", SHELLS)
def test_gpus_from_nvidia_smi(droplet: Droplet, shell: list[str]) -> None:
    droplet.tool("nvidia-smi", f"cat <<'END'\n{NVIDIA_SMI}END")
    document = droplet.one_tick(shell)["doc"]
    assert document["driver"] == {"source": "nvidia-smi", "version": "570.86.10"}
    assert document["gpus"]["GPU-5ad7"] == {
        "index": 0,
        "state": "ok",
        "name": "NVIDIA H100 80GB HBM3",
        "utilization": 45,
        "memory_busy": 12,
        "memory_total": 81559 << 20,
        "memory_used": 40000 << 20,
        "memory_free": 41559 << 20,
        "temperature": 51,
        "power_w": 312.45,
        "power_limit_w": 700.0,
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 2619,
    }
    assert not {"utilization", "memory_busy", "power_w"} & document["gpus"]["GPU-9c1e"].keys()


def test_an_nvidia_smi_that_fails(droplet: Droplet) -> None:
    droplet.tool("nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18")
    assert droplet.one_tick(["sh"])["doc"]["gpus"] == {}


@pytest.mark.parametrize("tool", ["curl", "wget", "busybox"])
@pytest.mark.parametrize("shell", SHELLS)
def test_triton_asked_with_what_is_there(droplet: Droplet, shell: list[str], tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool} here")
    if tool == "busybox":
        droplet.tool("wget", f'exec {shutil.which("busybox")} wget "$@"')
    else:
        droplet.link(tool)
    with replayed("batched") as ready, replayed("broken") as not_ready, replayed("restricted") as restricted:
        for pid, triton in ((10, ready), (11, not_ready), (12, restricted)):
            droplet.triton(pid, f"--http-port={triton.port}", "--http-address", "127.0.0.1")
        document = droplet.one_tick(shell)["doc"]
        servers = document["servers"]
        assert servers[f"triton-{ready.port}"] == {
            "how": "process",
            "pid": 10,
            "state": "ready",
            "version": "2.51.0",
            "http": f"127.0.0.1:{ready.port}",
        }
        assert servers[f"triton-{not_ready.port}"]["state"] == "not ready"
        assert servers[f"triton-{restricted.port}"]["state"] == "restricted"
        assert "Python 3.10" in document["unavailable"][f"/servers/triton-{ready.port}/models"]


def test_one_that_starts_is_told_from_one_that_hangs(droplet: Droplet) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl here")
    droplet.link("curl")
    with replayed("idle") as triton:
        triton.broken["/v2/health/ready"] = None
        droplet.triton(10, f"--http-port={triton.port}")
        droplet.triton(11, "--http-port", "1")
        servers = droplet.one_tick(["sh"])["doc"]["servers"]
        assert servers[f"triton-{triton.port}"]["state"] == "unreachable"
        assert servers["triton-1"]["state"] == "starting"


def test_without_a_tool_to_ask_with(droplet: Droplet) -> None:
    droplet.triton(10)
    server = droplet.one_tick(["sh"])["doc"]["servers"]["triton-8000"]
    assert server["state"] == "unreachable"
    assert "neither curl nor wget" in server["reason"]


def test_a_version_with_anything_in_it(droplet: Droplet) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl here")
    droplet.link("curl")
    with replayed("idle") as triton:
        triton.broken["/v2"] = respond(b'{"version":"$(id)\\\\`x`\x1b[31m\xff\0' + b"v" * 100_000 + b'"}')
        droplet.triton(10, f"--http-port={triton.port}")
        server = droplet.one_tick(["sh"])["doc"]["servers"][f"triton-{triton.port}"]
        assert len(server["version"]) <= 512
        assert server["version"].startswith("$(id)")


def test_several_servers_on_one_port_have_names_of_their_own(droplet: Droplet) -> None:
    droplet.triton(10)
    droplet.triton(11)
    droplet.triton(12, "--allow-http=false")
    droplet.process(13, "x", comm="sleep")
    assert set(droplet.one_tick(["sh"])["doc"]["servers"]) == {"triton-8000", "triton-11", "triton-12"}


@pytest.mark.parametrize("shell", SHELLS)
def test_it_ends_with_its_input(droplet: Droplet, shell: list[str]) -> None:
    with droplet.running(shell, "telemetry", "30") as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == MARK
        assert json.loads(process.stdout.readline())["seq"] == 0
        process.stdin.close()
        began = time.monotonic()
        process.wait(10)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("shell", SHELLS)
def test_it_ends_when_nobody_reads(droplet: Droplet, shell: list[str]) -> None:
    with droplet.running(shell) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == MARK
        process.stdout.close()
        process.wait(15)


def test_ticks_go_on(droplet: Droplet) -> None:
    with droplet.running(["sh"]) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [json.loads(process.stdout.readline())["seq"] for _ in range(3)] == [0, 1, 2]


def test_facts(droplet: Droplet) -> None:
    droplet.write("/etc/os-release", 'NAME=x\nPRETTY_NAME="Debian GNU/Linux 12"\n')
    with droplet.running(["sh"], "facts") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == MARK
        facts = json.loads(process.stdout.readline())
    assert (facts["schema"], facts["os"]["pretty_name"]) == ("facts/1", "Debian GNU/Linux 12")
    assert facts["kernel"]["release"] == os.uname().release


def test_another_script_is_refused(droplet: Droplet) -> None:
    with droplet.running(["sh"], "change") as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert json.loads(process.stdout.readline())["error"] == "internal"
        assert process.wait(10) == 70
