"""The practice droplet with a real Triton, where it was installed (``make demo`` does that)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.demo import wheel
from console.demo.start import DemoDroplet, start_demo
from console.domain.telemetry.sample import Sample, ServerSample
from console.remote.prompts import NoPrompter
from console.services.watching import Watch, watch
from tests.demo.test_demo import alive, wait_until


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoDroplet]:
    if wheel.installed() is None:
        pytest.skip(
            wheel.unable() or f"no real Triton in {wheel.home()}: `python -m console.demo.wheel` installs it"
        )
    with start_demo() as running:
        yield running


def server_of(watched: Watch, wanted: str, within: float) -> tuple[Sample, ServerSample]:
    deadline = time.monotonic() + within
    seen = ""
    while time.monotonic() < deadline:
        event = watched.events(1.0)
        if event is not None and event.sample is not None and event.sample.servers:
            server = event.sample.servers[0]
            seen = f"{server.state}: {server.reason}"
            if server.state == wanted and event.sample.interval and any(model.rps for model in server.models):
                return event.sample, server
    raise AssertionError(f"not {wanted} within {within:g} s, but {seen}")


def test_a_real_triton_serves_real_requests_on_a_simulated_gpu(demo: DemoDroplet, tmp_path: Path) -> None:
    with watch([demo.droplet], prompter=NoPrompter(), known_hosts=tmp_path / "known_hosts") as watched:
        sample, server = server_of(watched, "ready", 30)
    assert (server.name, server.version) == ("triton", wheel.VERSION)
    assert {model.name for model in server.models} >= {"sim_whisper", "sim_resnet50", "sim_reranker"}
    assert sample.gpus[0].name == "NVIDIA H100 80GB HBM3 (simulated)"
    assert [holder.server for holder in sample.gpus[0].holders] == ["triton"]
    assert server.pid is not None
    assert alive(server.pid)


def test_it_ends_with_the_demo_even_where_that_is_killed() -> None:
    if wheel.installed() is None:
        pytest.skip("no real Triton is installed")
    demo = start_demo()
    try:
        group: list[int] = []
        wait_until(lambda: bool(group) or _add(group, triton_of(demo.folder)), 10)
        os.kill(demo.pid, signal.SIGKILL)
        wait_until(lambda: not alive(group[0]))
    finally:
        demo.close()
    assert not demo.folder.exists()
    with start_demo(stand_in=True):  # which sweeps
        assert not list(Path("/dev/shm").glob(f"{demo.folder.name}*"))


def _add(found: list[int], pid: int | None) -> bool:
    if pid is not None:
        found.append(pid)
    return bool(found)


def triton_of(folder: Path) -> int | None:
    """The process id of the demo's real server, by the practice droplet's own /proc."""
    for comm in (folder / "root/proc").glob("[0-9]*/comm"):
        if comm.read_text() == "tritonserver\n":
            return int(comm.parent.name)
    return None


def test_what_it_cannot_do_here_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert "x86-64" in (wheel.unable() or "")
    monkeypatch.setenv(wheel.VARIABLE, str(tmp_path / "nothing"))
    assert wheel.installed() is None
