"""The demo's process, reached as any droplet is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.demo import folders
from console.demo.start import DemoDroplet, DemoError, start_demo
from console.domain.telemetry.sample import Sample
from console.remote.address.resolve import resolve
from console.remote.connect import connect
from console.remote.errors import FailureKind, RemoteError
from console.remote.login.login import LoginContext
from console.remote.prompts import NoPrompter
from console.remote.scripts.running import run_script
from console.remote.transport import Transport
from console.services.link import Phase
from console.services.watching import watch
from console.settings.schema import Practice


def practice(demo: DemoDroplet) -> Practice:
    assert demo.droplet.practice is not None
    return demo.droplet.practice


@pytest.fixture
def reach(demo: DemoDroplet, tmp_path: Path) -> Iterator[Callable[[], Transport]]:
    context = LoginContext(tmp_path / "known_hosts", clock=iter(range(0, 10**9, 100)).__next__)
    reached: list[Transport] = []

    def to() -> Transport:
        target = resolve("demo", config=practice(demo).ssh_config)
        reached.append(connect(target, prompter=NoPrompter(), context=context, timeout=15))
        return reached[-1]

    yield to
    for transport in reached:
        transport.close()
    context.close()


def ssh(demo: DemoDroplet, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """OpenSSH's own, with the demo's ssh_config."""
    command = ["ssh", "-F", practice(demo).ssh_config, *words]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=20, check=False)


def test_it_is_watched_like_any_droplet(demo: DemoDroplet, tmp_path: Path) -> None:
    samples: list[Sample] = []
    with watch([demo.droplet], prompter=NoPrompter(), known_hosts=tmp_path / "known_hosts") as watched:
        deadline = time.monotonic() + 20
        while len(samples) < 3:
            assert time.monotonic() < deadline
            event = watched.events(1.0)
            if event is not None and event.sample is not None:
                samples.append(event.sample)
            assert event is None or event.link is None or event.link.phase is not Phase.FAILED, event
    last = samples[-1]
    assert last.droplet == "demo"
    (server,) = last.servers
    assert (server.name, server.unit) == ("triton-standin", "triton-standin.service")
    assert "stand-in" in (server.version or "")
    assert last.gpus[0].name == "NVIDIA H100 80GB HBM3 (simulated)"
    assert last.gpus[0].dram_gb_s
    assert last.gpus[0].dram_source == "gpm"
    assert last.host.hostname == "practice-droplet"
    whisper = next(model for model in server.models if model.name == "sim_whisper")
    assert whisper.state == "READY"
    assert whisper.p95_ms
    assert whisper.average["hit_rate"] is not None
    moving = (last.host.cpu.busy_percent, last.host.net_rx_rate, last.host.disk_write_rate)
    assert all(figure is not None and figure > 0 for figure in moving)


def test_its_facts_can_be_read(demo: DemoDroplet, reach: Callable[[], Transport]) -> None:
    found = run_script(reach(), "facts", {}, timeout=30, root=practice(demo).root, path=practice(demo).path)
    assert found["os"]["id"] == "practice"
    assert found["units"]["units"]["triton-standin.service"]["active"] == "active"
    (server,) = found["triton"]
    assert "stand-in" in server["version"]


def test_exit_statuses_signals_and_input_arrive(reach: Callable[[], Transport]) -> None:
    transport = reach()
    assert transport.run(["sh", "-c", "exit 7"], timeout=10).exit_status == 7
    assert transport.run(["cat"], stdin=b"\x00\xff" * 100_000, timeout=10).stdout == b"\x00\xff" * 100_000
    assert transport.run(["sh", "-c", "kill -KILL $$"], timeout=10).signal == "KILL"
    said = transport.run(["sh", "-c", "echo out; echo err >&2"], timeout=10)
    assert (said.stdout, said.stderr) == (b"out\n", b"err\n")
    assert transport.probe(5) < 5


def test_commands_see_one_path_and_nothing_of_the_persons(
    demo: DemoDroplet, reach: Callable[[], Transport]
) -> None:
    said = reach().run(["env"], timeout=10).stdout.decode()
    values = dict(line.partition("=")[::2] for line in said.splitlines())
    assert values["PATH"] == practice(demo).path[0]
    assert values["HOME"].startswith(str(demo.folder))
    assert set(values) <= {
        "PATH",
        "HOME",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    }
    tools = {file.name for file in Path(practice(demo).path[0]).iterdir()}
    assert not tools & {"sudo", "su", "ufw", "apt-get", "nft", "iptables", "docker", "nvidia-smi"}


def test_a_command_ends_with_its_channel(reach: Callable[[], Transport]) -> None:
    transport = reach()
    process = transport.open(["sh", "-c", "echo $$; exec sleep 600"], timeout=10)
    chunk = process.read(10)
    assert chunk is not None
    pid = int(chunk.data)
    process.close()
    wait_until(lambda: not alive(pid))


def test_only_the_throw_away_key_is_let_in(demo: DemoDroplet, tmp_path: Path) -> None:
    stranger = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", str(stranger)], check=True)
    text = Path(practice(demo).ssh_config).read_text()
    config = tmp_path / "ssh_config"
    config.write_text("\n".join(line for line in text.splitlines() if "IdentityFile" not in line) + "\n")
    command = ["ssh", "-F", str(config), "-i", str(stranger), "-o", "BatchMode=yes", "demo", "true"]
    refused = subprocess.run(command, capture_output=True, timeout=20, check=False)
    assert refused.returncode == 255
    assert b"Permission denied (publickey)" in refused.stderr
    other = ssh(demo, "-l", "root", "-o", "BatchMode=yes", "demo", "true")
    assert other.returncode == 255
    assert ssh(demo, "demo", "true").returncode == 0


def test_it_listens_on_loopback_alone(demo: DemoDroplet) -> None:
    if not Path("/proc/net/tcp").exists():
        pytest.skip("this machine has no /proc/net/tcp")
    own = set()
    for link in Path(f"/proc/{demo.pid}/fd").iterdir():
        try:
            own.add(str(link.readlink()))
        except OSError:
            continue
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in own:
                addresses.append(words[1].split(":")[0])
    assert len(addresses) >= 1
    assert set(addresses) == {"0100007F"}


def test_it_forwards_to_the_stand_in_and_to_nothing_else(demo: DemoDroplet) -> None:
    arguments = next(Path(practice(demo).root, "proc").glob("[0-9]*/cmdline")).parent.parent
    flags = [file.read_text() for file in arguments.glob("[0-9]*/cmdline")]
    port = next(
        int(word.partition("=")[2])
        for text in flags
        for word in text.split("\0")
        if word.startswith("--http-port=")
    )
    request = b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = ssh(demo, "-W", f"127.0.0.1:{port}", "demo", stdin=request)
    assert b"stand-in" in answer.stdout, answer
    with socket.create_server(("127.0.0.1", 0)) as other:
        refused = ssh(demo, "-W", f"127.0.0.1:{other.getsockname()[1]}", "demo", stdin=b"x")
        assert refused.returncode != 0
        assert not refused.stdout


def test_it_has_no_shell_and_says_why(demo: DemoDroplet) -> None:
    answer = ssh(demo, "-tt", "demo")
    assert b"no shell of its own" in answer.stdout


def test_a_login_that_is_not_the_demos_is_an_ordinary_failure(demo: DemoDroplet, tmp_path: Path) -> None:
    target = resolve("nobody@demo", config=practice(demo).ssh_config)
    with pytest.raises(RemoteError) as caught:
        connect(target, prompter=NoPrompter(), context=LoginContext(tmp_path / "known_hosts"), timeout=15)
    assert caught.value.kind is FailureKind.NO_KEY_ACCEPTED


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def wait_until(condition: Callable[[], bool], within: float = 15.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_leaving_ends_the_process_and_removes_the_folder() -> None:
    with start_demo(stand_in=True) as demo:
        assert demo.folder.is_dir()
        assert (demo.folder.stat().st_mode & 0o777) == 0o700
    assert not alive(demo.pid)
    assert not demo.folder.exists()


def test_it_ends_with_a_console_that_is_killed() -> None:
    program = (
        "import sys, time\n"
        "from console.demo.start import start_demo\n"
        "demo = start_demo(stand_in=True)\n"
        "print(demo.pid, demo.folder, flush=True)\n"
        "time.sleep(600)\n"
    )
    console = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert console.stdout is not None
    pid, folder = console.stdout.readline().split()
    console.kill()
    console.wait()
    console.stdout.close()
    wait_until(lambda: not alive(int(pid)) and not Path(folder).exists())


def test_a_demo_that_is_killed_leaves_no_folder_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start_demo(stand_in=True) as demo:
        os.kill(demo.pid, signal.SIGKILL)
        wait_until(lambda: not alive(demo.pid))
    assert not demo.folder.exists()
    # Both were killed: the next demo sweeps what nobody holds.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = folders.make()
    held = folders.make()
    left.release()
    folders.sweep()
    assert not left.path.exists()
    assert held.path.exists()
    held.release()


def test_a_signal_ends_it_in_order() -> None:
    with start_demo(stand_in=True) as demo:
        os.kill(demo.pid, signal.SIGTERM)
        wait_until(lambda: not demo.folder.exists())


def test_a_demo_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    monkeypatch.setenv("TMP", "/nonexistent")
    broken = tmp_path / "paramiko.py"
    broken.write_text("raise ImportError('a damaged installation')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(DemoError, match="damaged installation"):
        start_demo(stand_in=True)


def test_ssh_needs_nothing_of_the_persons_to_reach_it(demo: DemoDroplet) -> None:
    told = ssh(demo, "-G", "demo").stdout.decode().splitlines()
    files = [line.split()[1] for line in told if line.startswith(("identityfile ", "userknownhostsfile "))]
    assert len(files) == 2
    assert all(file.startswith(str(demo.folder)) for file in files)


def test_a_folder_with_an_awkward_name_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    awkward = tmp_path / "a'c$d;e"
    awkward.mkdir()
    monkeypatch.setenv("TMPDIR", str(awkward))
    with start_demo(stand_in=True) as demo:
        assert demo.folder.parent == awkward.resolve()
        with watch([demo.droplet], prompter=NoPrompter()) as watched:
            deadline = time.monotonic() + 15
            sample = None
            while sample is None:
                assert time.monotonic() < deadline
                event = watched.events(1.0)
                sample = event.sample if event is not None else None
                assert event is None or event.link is None or event.link.error is None, event
        assert sample.servers[0].state == "ready"
    assert list(awkward.iterdir()) == []
