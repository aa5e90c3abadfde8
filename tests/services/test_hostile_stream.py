"""From the bytes of a hostile droplet to what the command line prints: nothing raw, nothing without bound."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("hostile_script.py")
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What must not come to a terminal: controls but the newline, what turns or hides text, what is no character."""


class Command:
    """``droplet-console watch local`` with this way of going wrong on the other side."""

    def __init__(self, folder: Path, way: str, *words: str) -> None:
        fake = folder / "bin"
        fake.mkdir(exist_ok=True)
        python = fake / "python3"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SCRIPT}" "{way}"\n')
        python.chmod(0o755)
        self.out, self.err = folder / "out", folder / "err"
        config = folder / "config.yaml"
        config.write_text("{}\n")
        environment = {**os.environ, "PATH": f"{fake}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        command = [sys.executable, "-m", "console", "watch", "local", "--config", str(config), *words]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=err)

    def wait(self, seconds: float) -> tuple[int, float, float]:
        """Exit status, processor seconds and the most MiB of memory that it ever took."""
        deadline = time.monotonic() + seconds
        peak = 0.0
        while time.monotonic() < deadline:
            peak = self._peak() or peak
            pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                return self.process.returncode, used.ru_utime + used.ru_stime, peak
            time.sleep(0.02)
        self.process.kill()
        self.process.wait()
        pytest.fail(f"did not end within {seconds:g} s; said: {self.said[-500:]}")

    def _peak(self) -> float | None:
        """The most MiB so far. Not the usage at its end: that still holds what these tests were before the exec."""
        found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(found[1]) / 1024 if found else None

    @property
    def shown(self) -> str:
        return self.out.read_bytes().decode("utf-8", "surrogateescape")

    @property
    def said(self) -> str:
        return self.err.read_bytes().decode("utf-8", "surrogateescape")

    def check_clean(self) -> None:
        for text in (self.shown, self.said):
            found = RAW.search(text)
            assert found is None, ascii(text[max(found.start() - 40, 0) : found.end() + 40])


@pytest.mark.parametrize(
    "way",
    [
        "strings",
        "too large for a float",
        "infinite",
        "keys twice",
        "300,000 keys",
        "a million lists",
        "a million series",
        "everything taken away",
        "hello of wrong types",
    ],
)
def test_lines_are_taken_whatever_stands_in_them(tmp_path: Path, way: str) -> None:
    people = Command(tmp_path, way, "--count", "2")
    status, _, memory = people.wait(30)
    assert status == 0
    people.check_clean()
    assert memory < 300
    machines = Command(tmp_path, way, "--count", "2", "--json")
    assert machines.wait(30)[0] == 0
    machines.check_clean()
    documents = [json.loads(line) for line in machines.shown.splitlines()]
    assert [document["schema"] for document in documents] == ["sample/1"] * 2
    assert machines.shown.isascii()
    assert documents[-1]["host"]["hostname"] in ("sound", None)
    assert "Traceback" not in people.said + machines.said


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("not UTF-8", "it sent what is no JSON"),
        ("NaN", "it sent what is no JSON"),
        ("too many digits", "it sent what is no JSON"),
        ("10,000 deep", "it sent what is no JSON"),
        ("no object", "it sent JSON that is no object"),
        ("its own failure", "[bold red]y[/]"),
        ("not zlib", "it sent no zlib stream"),
        ("a line without end", "it sent a line of more than"),
        ("empty lines", "it sent empty lines without end"),
        ("empty lines, packed", "it sent empty lines without end"),
        ("a line without end, packed", "it sent a line of more than"),
        ("small lines, packed", "far more often than every 1 s"),
        ("a flood", "far more often than every 1 s"),
    ],
)
def test_what_is_no_telemetry_is_told_and_bounded(tmp_path: Path, way: str, why: str) -> None:
    command = Command(tmp_path, way, "--timeout", "4")
    status, processor, memory = command.wait(30)
    assert status == 3
    command.check_clean()
    assert why in command.said
    assert "Traceback" not in command.said
    assert memory < 120
    assert processor < 2.5, "it is given up, not read on and on"


def test_half_a_line_is_no_line_and_the_stream_begins_anew_ever_more_seldom(tmp_path: Path) -> None:
    command = Command(tmp_path, "half a line", "--count", "3", "--json")
    assert command.wait(30)[0] == 0
    command.check_clean()
    assert "it ended within a line; trying again in 1 s" in command.said
    assert "it ended within a line; trying again in 2 s" in command.said
    assert [json.loads(line)["interval"] for line in command.shown.splitlines()] == [None] * 3


@pytest.mark.parametrize("way", ["noise before the hello", "marks before the hello", "the largest lines"])
def test_what_never_ends_takes_no_memory_and_half_a_core(tmp_path: Path, way: str) -> None:
    command = Command(tmp_path, way, "--timeout", "4", "--json")
    if way == "the largest lines":
        time.sleep(6)
        command.process.send_signal(2)
    _, processor, memory = command.wait(30)
    command.check_clean()
    assert "Traceback" not in command.said
    assert memory < 350
    assert processor < 6
