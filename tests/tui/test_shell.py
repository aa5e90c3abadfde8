"""The terminal is lent to the real command line of ssh, and comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.terminal import Console

SETTINGS = "droplets:\n  far: {host: 192.0.2.1, user: root, port: 2222}\n"
SSH = """#!/bin/sh
[ "$1" = -G ] && exit 1
echo "ssh was given: $*"
stty -a | grep -q ' echo ' && stty -a | grep -q ' icanon' && echo 'a plain terminal'
read line
echo "typed: $line"
exit 3
"""


@pytest.fixture
def own_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "bin" / "ssh"
    script.parent.mkdir()
    script.write_text(SSH)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=":")


@pytest.mark.usefixtures("own_ssh")
def test_ssh_has_the_terminal_to_itself_and_the_console_comes_back(tmp_path: Path) -> None:
    with Console(tmp_path, "far", settings=SETTINGS) as console:
        console.until("REQUESTS/S")
        console.press("s")
        console.until("a plain terminal")
        assert b"ssh was given: -p 2222 -- root@192.0.2.1" in console.output
        console.read(1.6)
        console.press("hello\r")
        console.until("the shell on far ended with status 3")
        assert b"typed: hello" in console.output
        console.press("q")
        assert console.status() == 0
        assert console.modes_left() == {}


@pytest.mark.usefixtures("own_ssh")
def test_an_interrupt_is_the_shells_and_what_ended_at_once_can_be_read(tmp_path: Path) -> None:
    with Console(tmp_path, "far", settings=SETTINGS) as console:
        console.until("REQUESTS/S")
        console.press("s")
        console.until("a plain terminal")
        console.press("\x03")
        console.until("press enter to go back")
        console.press("\r")
        console.until("the shell on far ended")
        console.press("q")
        assert console.status() == 0
