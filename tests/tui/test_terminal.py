from __future__ import annotations

import os
import random
import signal
import termios
import time
from pathlib import Path

import pytest

from tests.tui.terminal import Console

SETTINGS = "droplets:\n  here: {host: local}\n  refuses: {host: 127.0.0.1, port: 1}\n"


def test_quitting_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with Console(tmp_path, settings=SETTINGS) as console:
        console.until("DROPLET")
        console.until("live")
        console.press("q")
        assert console.status() == 0
        assert console.modes_left() == {}
        assert termios.tcgetattr(console.fd) == console.attributes


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(tmp_path: Path, number: int) -> None:
    with Console(tmp_path, settings=SETTINGS) as console:
        console.until("DROPLET")
        console.read(0.5)
        os.kill(console.pid, number)
        assert console.status() == 128 + number
        assert console.modes_left() == {}
        assert termios.tcgetattr(console.fd) == console.attributes
        assert b"Traceback" not in console.output


def test_a_signal_at_once_ends_it_too(tmp_path: Path) -> None:
    with Console(tmp_path, settings=SETTINGS) as console:
        console.read(0.25)
        os.kill(console.pid, signal.SIGTERM)
        assert console.status() in (143, -signal.SIGTERM)
        assert console.modes_left() == {}


def test_a_terminal_that_is_closed_ends_it(tmp_path: Path) -> None:
    with Console(tmp_path, settings=SETTINGS) as console:
        console.until("DROPLET")
        console.read(0.5)
        os.close(console.fd)
        end = time.monotonic() + 5
        while True:
            done, _ = os.waitpid(console.pid, os.WNOHANG)
            if done:
                break
            assert time.monotonic() < end, "it outlives its terminal"
            time.sleep(0.05)
        console.pid = 0


def test_a_terminal_that_nobody_reads_does_not_hold_it(tmp_path: Path) -> None:
    with Console(tmp_path, settings=SETTINGS, size=(200, 50)) as console:
        console.until("DROPLET")
        for key in "?q3?q1?q" * 12:  # far more output than the terminal's buffer holds
            console.press(key)
            time.sleep(0.02)
        os.kill(console.pid, signal.SIGTERM)
        end = time.monotonic() + 8
        while os.waitpid(console.pid, os.WNOHANG) == (0, 0):
            assert time.monotonic() < end, "it waits for a terminal that nobody reads"
            time.sleep(0.05)
        console.pid = 0


KEYS = [
    *"123feo?/:tpcgsmRrjkGqx<> +-[],.lhw", "\x1b", "\r", "\t", "\x10", "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~",
    "\x1b[H", "\x1b[F", "\x1b[<64;10;10M", "\x1b[<0;10;5M", "\x1b[<0;10;5m",
    "\x7f", "ä", "漢", "\x1b[200~[bold]\x1b[201~",
]  # fmt: skip
LEAVES = {"q", "s", "x"}
"""Left out here: they end it, lend the terminal, or write files."""


@pytest.mark.parametrize("seed", range(2))
def test_random_keys_and_sizes_neither_crash_it_nor_stick(tmp_path: Path, seed: int) -> None:
    picks = random.Random(seed)
    keys = [key for key in KEYS if key not in LEAVES]
    with Console(tmp_path, settings=SETTINGS) as console:
        console.until("DROPLET")
        for number in range(500):
            if number % 10 == 9:
                console.resize(picks.randint(1, 250), picks.randint(1, 60))
            console.press(picks.choice(keys))
            console.read(0.01)
            assert os.waitpid(console.pid, os.WNOHANG) == (0, 0), console.output[-3000:].decode("utf-8", "replace")
        console.resize(100, 30)
        for _ in range(4):
            console.press("\x1b")
            console.read(0.3)
        console.press("\x03")
        assert console.status() == 0
        assert console.modes_left() == {}
        assert b"Traceback" not in console.output
