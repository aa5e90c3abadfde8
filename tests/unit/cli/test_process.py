"""The command as a process: what only a real standard output, a real terminal and a real signal can show."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from tests.unit.cli.fakes import settings_file

ENDLESS = """
import itertools, sys, time
from console.cli import main, watch
from tests.unit.cli import fakes, samples

class Endless(fakes.FakeFleet):
    def events(self, timeout):
        time.sleep(0.001)
        return fakes.sampled(samples.sample("x"))

watch.open_fleet = fakes.Opened(Endless([]))
sys.exit(main.main(sys.argv[1:]))
"""
ROOT = Path(__file__).parents[3]


def start(*words: str, **more: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", ENDLESS, *words]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, **more)  # type: ignore[call-overload,no-any-return]


def test_a_reader_that_goes_ends_it_without_a_word(tmp_path: Path) -> None:
    process = start("watch", "x", "--json", "--config", settings_file(tmp_path, ""), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b'{"schema":"sample/1"')
    process.stdout.close()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said == b""


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = start("watch", "x", "--json", "--config", settings_file(tmp_path, ""), stdout=full)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 5
    assert said == b"droplet-console: the output could not be written: No space left on device\n"


def test_ctrl_c_ends_it_with_130_and_without_a_trace(tmp_path: Path) -> None:
    process = start("watch", "x", "--json", "--config", settings_file(tmp_path, ""), stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == b""


def test_a_terminal_gets_colour_unless_it_says_no(tmp_path: Path) -> None:
    file = settings_file(tmp_path, "")
    for environment, coloured in (
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({}, False),
    ):
        ours, theirs = pty.openpty()
        base = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        process = start("watch", "x", "--count", "1", "--config", file, stdout=theirs, env=base | environment)
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:
            pass  # how Linux says that the other end is closed
        os.close(ours)
        assert process.wait(30) == 0
        assert (b"\x1b[" in shown) is coloured
        assert b"echo/1" in shown


def test_what_is_said_on_a_terminal_breaks_at_spaces() -> None:
    ours, theirs = pty.openpty()
    say = "import sys; from console.cli.output import standard; standard().tell('word ' * 30 + 'end')"
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "80"}
    process = subprocess.Popen([sys.executable, "-c", say], cwd=ROOT, stderr=theirs, env=environment)
    assert process.wait(30) == 0
    os.close(theirs)
    lines = os.read(ours, 4096).decode().splitlines()
    os.close(ours)
    assert lines == ["word " * 15 + "word", "    " + "word " * 14 + "end"]
