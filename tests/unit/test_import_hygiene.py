"""What must not be loaded at start: each promise in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "textual",
    "paramiko",
    "cryptography",
    "numpy",
    "grpc",
    "tritonclient",
    "httpx",
    "pynvml",
    "rich",
    "google",
)
SETTINGS = ("yaml", "platformdirs")
NETWORK = ("socket", "ssl", "subprocess", "asyncio", "logging")


def loaded(tmp_path: Path, *words: str) -> tuple[set[str], str]:
    """Modules that are loaded when the command line has run, and what it printed."""
    program = (
        "import json, sys\n"
        "from console.cli.main import main\n"
        "status = main(sys.argv[1:])\n"
        "print(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", program, *words]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True)
    status, modules = json.loads(done.stderr.splitlines()[-1])
    assert status == 0
    return set(modules), done.stdout


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["status", "--help"], ["watch", "--help"]])
def test_help_and_version_load_nothing_that_they_do_not_need(tmp_path: Path, words: list[str]) -> None:
    modules, printed = loaded(tmp_path, *words)
    assert "droplet-console" in printed
    assert not modules & {*HEAVY, *SETTINGS, *NETWORK}
    ours = {name for name in modules if name.split(".")[0] == "console"}
    assert ours == {"console", "console.cli", "console.cli.main", "console.cli.options", "console.cli.exits"}


def test_the_inventory_loads_the_settings_and_no_network(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("droplets: {a: {}}\n", encoding="utf-8")
    modules, printed = loaded(tmp_path, "droplets", "--config", str(file))
    assert "a" in printed
    assert "yaml" in modules
    assert not modules & {*HEAVY, "platformdirs", "ssl", "asyncio"}
    assert not {name for name in modules if name.startswith(("console.services", "console.tui", "console.demo"))}


def test_the_module_is_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "console", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("droplet-console ")
    assert done.stderr == ""
