"""Running a command to its end."""

from __future__ import annotations

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.transport import Transport
from tests.contract.living import long_sleep, wait_for

ALL_BYTES = bytes(range(256))
SEED = 20_000 * 256


def test_outputs_stay_apart_and_the_status_comes(transport: Transport) -> None:
    done = transport.run(["sh", "-c", "echo out; echo err >&2; exit 7"], timeout=20)
    assert (done.exit_status, done.signal, done.stdout, done.stderr) == (7, None, b"out\n", b"err\n")
    assert not done.truncated


@pytest.mark.parametrize("status", [0, 1, 126, 127, 128, 137, 200, 255])
@pytest.mark.parametrize("stdin", [b"", b"x"])
def test_every_exit_status_is_kept(transport: Transport, status: int, stdin: bytes) -> None:
    done = transport.run(["sh", "-c", f"exit {status}"], stdin=stdin, timeout=20)
    assert (done.exit_status, done.signal) == (status, None)


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "HUP"])
@pytest.mark.parametrize("stdin", [b"", b"x"])
def test_an_end_by_signal_is_told(transport: Transport, name: str, stdin: bytes) -> None:
    done = transport.run(["sh", "-c", f"ulimit -c 0; kill -{name} $$"], stdin=stdin, timeout=20)
    assert (done.exit_status, done.signal) == (None, name)


def test_arguments_arrive_as_they_are(transport: Transport) -> None:
    words = [
        "",
        " two words ",
        "it's",
        '"quoted"',
        "back\\slash\\\\twice\\",
        "$HOME `id` $(id) ${x}",
        "a\nb\n",
        "tab\tcr\r",
        "!bang !! !$",
        "* ? [a] {a,b} ~ # ; & | < >",
        "-n",
        "%s %b \\0101 \\n",
        "é ☃ 𝄞 \u0085",
        "\x01\x02\x1b[31m\x7f",
        "".join(map(chr, range(0x80, 0x100))),
        "x" * 60_000,
    ]
    done = transport.run(["sh", "-c", 'for w in "$@"; do printf "%s\\0" "$w"; done', "sh", *words], timeout=20)
    assert done.stdout.split(b"\0")[:-1] == [word.encode() for word in words]


def test_a_command_that_does_not_exist(transport: Transport) -> None:
    done = transport.run(["no-such-command-here"], timeout=20)
    assert done.exit_status == 127
    assert b"no-such-command-here" in done.stderr


@pytest.mark.parametrize("command", [[], ["a\0b"]])
def test_a_command_that_cannot_be_is_refused(transport: Transport, command: list[str]) -> None:
    with pytest.raises(ValueError, match="command"):
        transport.run(command, timeout=20)


@pytest.mark.parametrize("size", [1, 4095, 65_535, 65_536, 65_537, 1_000_000])
def test_input_of_any_size_and_kind(transport: Transport, size: int) -> None:
    data = (ALL_BYTES * (size // 256 + 1))[:size]
    done = transport.run(["cat"], stdin=data, timeout=30)
    assert done.stdout == data


def test_ten_megabytes_in_and_out_at_the_same_time(transport: Transport) -> None:
    data = ALL_BYTES * (10 * 4096)
    done = transport.run(["sh", "-c", "tee /dev/stderr"], stdin=data, timeout=60, limit=1 << 25)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
    assert hashlib.sha256(done.stderr).digest() == hashlib.sha256(data).digest()


def test_much_on_both_outputs_does_not_block(transport: Transport) -> None:
    script = "head -c 5000000 /dev/zero >&2; head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2"
    done = transport.run(["sh", "-c", script], timeout=60, limit=1 << 25)
    assert (len(done.stdout), len(done.stderr)) == (5_000_000, 10_000_000)


def test_what_is_over_the_limit_is_read_and_dropped(transport: Transport) -> None:
    done = transport.run(["sh", "-c", "printf abcdef; head -c 9000000 /dev/zero >&2"], timeout=30, limit=4)
    assert (done.stdout, done.stderr, done.truncated, done.exit_status) == (b"abcd", b"\0\0\0\0", True, 0)


def test_without_input_a_command_reads_nothing(transport: Transport) -> None:
    assert transport.run(["wc", "-c"], timeout=20).stdout.strip() == b"0"


def test_input_that_is_not_wanted_is_no_failure(transport: Transport) -> None:
    done = transport.run(["sh", "-c", "exec <&-; sleep 0.2; echo done"], stdin=b"x" * 5_000_000, timeout=30)
    assert (done.exit_status, done.stdout) == (0, b"done\n")
    done = transport.run(["true"], stdin=b"x" * 5_000_000, timeout=30)
    assert done.exit_status == 0


def test_a_command_out_of_time_is_ended_with_its_group(transport: Transport) -> None:
    seconds = long_sleep()
    with pytest.raises(RemoteError) as caught:
        transport.run(["sh", "-c", f"sleep {seconds} & sleep {seconds}; :"], timeout=1.5)
    assert caught.value.kind is FailureKind.COMMAND_TIMED_OUT
    wait_for(seconds, 0)


def test_a_command_that_ignores_every_polite_signal_is_ended(transport: Transport) -> None:
    seconds = long_sleep()
    with pytest.raises(RemoteError):
        transport.run(["sh", "-c", f"trap '' TERM HUP INT; sleep {seconds}; sleep {seconds}; :"], timeout=1.5)
    wait_for(seconds, 0)


def test_what_a_command_leaves_behind_ends_with_it(transport: Transport) -> None:
    seconds = long_sleep()
    done = transport.run(["sh", "-c", f"sleep {seconds} & echo left"], timeout=20)
    assert (done.stdout, done.exit_status) == (b"left\n", 0)
    wait_for(seconds, 0)


def test_a_command_that_waits_for_all_its_children_has_none_of_ours(transport: Transport) -> None:
    script = "import os\ntry:\n os.wait()\nexcept ChildProcessError:\n print('none')"
    assert transport.run(["python3", "-c", script], timeout=20).stdout == b"none\n"
    assert transport.run(["python3", "-c", script], stdin=b"x", timeout=20).stdout == b"none\n"


def test_commands_run_at_the_same_time(transport: Transport) -> None:
    def one(number: int) -> bytes:
        return transport.run(["sh", "-c", f"sleep 0.05; echo {number}"], stdin=b"x" * number, timeout=60).stdout

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(one, range(40))) == [b"%d\n" % n for n in range(40)]


def test_many_quick_commands_leave_nothing_behind(transport: Transport) -> None:
    transport.run(["true"], timeout=20)
    threads = threading.active_count()
    for _ in range(100):
        assert transport.run(["true"], timeout=20).exit_status == 0
    assert threading.active_count() <= threads
    seconds = long_sleep()
    # All slots are free again: as many commands as a login may have can run.
    processes = [transport.open(["sleep", seconds], timeout=10) for _ in range(8)]
    wait_for(seconds, 8)
    for process in processes:
        process.close()
    wait_for(seconds, 0)


def test_waiting_for_a_free_channel_counts_against_the_deadline(transport: Transport) -> None:
    processes = [transport.open(["cat"], timeout=10) for _ in range(8)]
    began = time.monotonic()
    with pytest.raises(RemoteError) as caught:
        transport.run(["true"], timeout=0.3)
    assert caught.value.kind is FailureKind.COMMAND_TIMED_OUT
    assert time.monotonic() - began < 5
    processes.pop().close()
    assert transport.run(["true"], timeout=20).exit_status == 0
    for process in processes:
        process.close()
