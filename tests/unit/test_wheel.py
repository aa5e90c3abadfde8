"""The built wheel, installed into an empty virtual environment and run from elsewhere."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = out.glob("*.whl")
    return built


def test_wheel_carries_the_remote_scripts_and_the_example(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    missing = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "remote_scripts").rglob("*")
        if path.suffix in {".py", ".sh"} and str(path.relative_to(ROOT)) not in names
    ]
    assert not missing
    assert "console/config.example.yaml" in names


def test_wheel_carries_no_tests(wheel: Path) -> None:
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(("tests/", "benchmarks/"))]


@pytest.mark.timeout(300)
def test_installed_wheel_runs_from_elsewhere(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=60)
    constraints = str(ROOT / "constraints.txt")
    pip = [str(venv / "bin" / "pip"), "install", "--quiet", "--constraint", constraints, str(wheel)]
    subprocess.run(pip, check=True, timeout=240)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    version = run(str(venv / "bin" / "droplet-console"), "--version")
    assert version.returncode == 0, version.stderr
    assert version.stdout.startswith("droplet-console ")
    # The scripts are found in the installed package, not in the source tree: a first tick of this very machine.
    status = run(str(venv / "bin" / "droplet-console"), "status", "local", "--json")
    assert status.returncode in (0, 1), status.stderr
    assert b"local" in _screen([str(venv / "bin" / "droplet-console"), "local"], elsewhere, environment)
    document = json.loads(status.stdout)
    assert document["schema"] == "status/1"
    assert document["droplets"][0]["host"]["hostname"]


def _screen(argv: list[str], folder: Path, environment: dict[str, str]) -> bytes:
    """What the console writes to a terminal of 80 by 24 until it has painted the name; then it is quit."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen = b""
    with subprocess.Popen(
        argv, cwd=folder, env={**environment, "TERM": "xterm-256color"}, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        deadline = time.monotonic() + 30
        while b"local" not in seen and process.poll() is None and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.5)[0]:
                seen += os.read(ours, 65536)
        process.terminate()
        while process.poll() is None and time.monotonic() < deadline + 10:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    seen += os.read(ours, 65536)
                except OSError:  # the terminal's other side is closed: it has ended
                    break
        assert process.wait(10) is not None
    os.close(ours)
    return seen
