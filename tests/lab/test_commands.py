from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab import host, setup
from tests.lab.cache import CACHE_VARIABLE

ROOT = Path(__file__).parents[2]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT,
        env={**os.environ, **environment},
    )


def test_setup_says_why_not_and_fails_only_where_the_lab_is_required(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.delenv(host.REQUIRED_VARIABLE, raising=False)
    assert setup.main() == 0
    assert "the lab needs root" in capsys.readouterr().err
    monkeypatch.setenv(host.REQUIRED_VARIABLE, "required")
    assert setup.main() == 1
    assert "the lab needs root" in capsys.readouterr().err


def test_setup_says_what_it_installs_before_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    monkeypatch.setattr(host, "why_impossible", lambda: None)
    monkeypatch.setitem(host.TOOLS, "no-such-tool", "its-package")

    def install(packages: list[str]) -> None:
        said.append(capsys.readouterr().err)
        raise RuntimeError("no network")

    monkeypatch.setattr(host, "install", install)
    setup.main()
    assert "installing with apt: " in said[0]
    assert "its-package" in said[0]
    assert "no network" in capsys.readouterr().err


def test_tests_on_the_lab_are_skipped_with_the_reason_or_fail_where_it_is_required(tmp_path: Path) -> None:
    where = {CACHE_VARIABLE: str(tmp_path)}
    arguments = ("pytest", "-p", "no:cacheprovider", "tests/lab/test_network.py")
    skipped = run(*arguments, **where, **{host.REQUIRED_VARIABLE: ""})
    assert skipped.returncode == 0
    assert "2 skipped" in skipped.stdout
    assert "the lab" in skipped.stdout
    failed = run(*arguments, **where, **{host.REQUIRED_VARIABLE: "required"})
    assert failed.returncode == 1
    assert f"${host.REQUIRED_VARIABLE} is required, and the lab" in failed.stdout


@pytest.mark.lab
def test_setup_is_quick_where_everything_is_built() -> None:
    start = time.monotonic()
    done = run("tests.lab", "setup")
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - start < 10  # building takes a minute


@pytest.mark.lab
def test_up_keeps_a_droplet_that_ssh_reaches_until_it_is_ended(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    built = Path(os.environ.get(CACHE_VARIABLE) or "/var/cache/droplet-console-lab")
    for shared in built.iterdir():
        if shared.name not in ("up", "runs", "locks"):
            (cache / shared.name).symlink_to(shared)
    environment = {**os.environ, CACHE_VARIABLE: str(cache)}
    command = [sys.executable, "-m", "tests.lab", "up"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as up:
        assert up.stderr is not None
        said = []
        for line in up.stderr:
            said.append(line)
            if "Ctrl-C" in line:
                break
        config = cache / "up" / "ssh_config"
        assert any(f"ssh -F {config} lab" in line for line in said)
        ssh = ["ssh", "-F", str(config), "-o", "BatchMode=yes", "lab", "id -u"]
        assert subprocess.run(ssh, capture_output=True, timeout=30).stdout == b"0\n"
        again = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30)
        assert again.returncode == 0
        first, *told, last = again.stderr.splitlines()
        assert first == "lab: a droplet is up already"
        assert [f"{line}\n" for line in told] == said[said.index(f"{told[0]}\n") : -1]
        assert last == f"lab: Ctrl-C where it was started ends it, or: kill -INT {up.pid}"
        up.send_signal(signal.SIGINT)
        assert up.wait(30) == 0
    assert not config.exists()
    assert list((cache / "runs").iterdir()) == []


def test_the_background_load_ends_with_whoever_started_it() -> None:
    command = [sys.executable, "-m", "tests.lab.triton.background", "--address", "127.0.0.1", "--port", "9"]
    command += ["--seconds", "60", "--until-input-ends", "echo"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as load:
        assert load.stdin is not None
        time.sleep(1)
        assert load.poll() is None
        load.stdin.close()
        assert load.wait(10) == 0
