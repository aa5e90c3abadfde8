"""The wrapping of commands, in every shell that is here, without any transport."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from console.remote import shell
from tests.contract.living import long_sleep, wait_for

SHELLS = {"sh": ["sh"], "dash": ["dash"], "bash": ["bash"], "busybox": ["busybox", "sh"]}


@pytest.fixture(params=SHELLS)
def sh(request: pytest.FixtureRequest) -> list[str]:
    words = SHELLS[request.param]
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]} on this machine")
    return words


def start(
    sh: list[str], command: list[str], *, stdin: bool = False, path: str | None = None
) -> subprocess.Popen[bytes]:
    text = shell.line(command, guard=True, stdin=stdin)
    return subprocess.Popen(
        [*sh, "-c", 'l=$1;eval "$l"', "sh", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=None if path is None else {"PATH": path},
    )


def finish(process: subprocess.Popen[bytes], data: bytes | None = None) -> tuple[bytes, int]:
    """As sshd does it: the input ends when the command has ended."""
    assert process.stdin
    assert process.stdout
    if data is not None:
        frames = shell.frame(data) + shell.frame(b"")
        threading.Thread(target=feed, args=(process, frames), daemon=True).start()
    status = process.wait(20)
    process.stdin.close()
    out = process.stdout.read()
    assert out.startswith(shell.STARTED)
    return out[len(shell.STARTED) :], status


def feed(process: subprocess.Popen[bytes], frames: bytes) -> None:
    assert process.stdin
    process.stdin.write(frames)
    process.stdin.flush()


def test_status_signal_and_output(sh: list[str]) -> None:
    assert finish(start(sh, ["sh", "-c", "echo hi; exit 137"])) == (b"hi\n", 137)
    assert finish(start(sh, ["sh", "-c", "kill -9 $$"])) == (b"", -9)


def test_input_and_its_end(sh: list[str]) -> None:
    data = bytes(range(256)) * 1000
    out, status = finish(start(sh, ["sh", "-c", "wc -c; echo after"], stdin=True), data)
    assert (out.split(), status) == ([b"256000", b"after"], 0)


def test_the_end_of_the_line_kills_the_group(sh: list[str]) -> None:
    for stdin in (False, True):
        seconds = long_sleep()
        process = start(sh, ["sh", "-c", f"trap '' TERM; sleep {seconds} & sleep {seconds}; :"], stdin=stdin)
        wait_for(seconds, 2)
        assert process.stdin
        process.stdin.close()
        wait_for(seconds, 0)
        assert process.wait(10) == -9


def test_a_dd_that_takes_short_reads_for_blocks_is_not_trusted(tmp_path: Path) -> None:
    dd = shutil.which("dd")
    (tmp_path / "dd").write_text(
        f'#!/bin/sh\ncase "$*" in *iflag*) echo "dd: invalid argument" >&2; exit 1;; esac; exec {dd} "$@"\n'
    )
    (tmp_path / "dd").chmod(0o755)
    data = bytes(range(256)) * 20  # read byte by byte
    process = start(["sh"], ["cat"], stdin=True, path=f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin")
    assert finish(process, data) == (data, 0)


def test_no_named_pipe_is_left_behind() -> None:
    finish(start(["sh"], ["true"], stdin=True), b"x")
    places = (Path("/dev/shm"), Path("/tmp"), Path.home())
    assert [p for place in places for p in place.glob(".droplet-console.*") if is_old(p)] == []


def is_old(path: Path) -> bool:
    """Not just being made by another test."""
    try:
        return path.stat().st_mtime < time.time() - 5
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_frames(size: int) -> None:
    data = b"x" * size
    rest, found = shell.frame(data), b""
    while rest:
        line, _, rest = rest.partition(b"\n")
        block, count = map(int, line.split())
        found += rest[: block * count]
        rest = rest[block * count :]
        assert (block == 0) == (size == 0)
    assert found == data


def test_a_login_shell_sees_only_harmless_words() -> None:
    command = shell.login_command(shell.line(["printf", "it's\\\n!é\x01\x7f"], guard=True))
    assert all(0x20 <= ord(letter) < 0x7F for letter in command)
    assert "!" not in command
    assert "\\\\" not in command
    assert "\\'" not in command
    assert max(map(len, command.split("'"))) <= 900
