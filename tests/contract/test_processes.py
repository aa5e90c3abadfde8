"""Holding a running command."""

from __future__ import annotations

import resource
import threading
import time

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.transport import Process, Source, Transport
from tests.contract.living import long_sleep, wait_for


def read_all(process: Process, timeout: float = 20) -> tuple[bytes, bytes]:
    kept = {Source.OUT: b"", Source.ERR: b""}
    while chunk := process.read(timeout):
        kept[chunk.source] += chunk.data
    return kept[Source.OUT], kept[Source.ERR]


def read_line(process: Process, timeout: float = 20) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        chunk = process.read(timeout)
        assert chunk is not None
        line += chunk.data
    return line


def test_a_conversation(transport: Transport) -> None:
    with transport.open(["cat"], timeout=20) as process:
        for word in (b"one\n", b"two\n", b"\0\xff\n"):
            process.write(word, 5)
            assert read_line(process) == word
        process.close_stdin()
        process.close_stdin()
        assert process.read(20) is None
        assert process.wait(20).exit_status == 0


def test_the_end_of_input_reaches_the_command_and_does_not_kill_it(transport: Transport) -> None:
    with transport.open(["sh", "-c", "cat; sleep 0.5; echo after"], timeout=20) as process:
        process.write(b"before\n", 5)
        process.close_stdin()
        assert read_all(process) == (b"before\nafter\n", b"")
        assert process.wait(20).exit_status == 0


def test_after_the_end_of_input_a_closed_process_is_still_ended(transport: Transport) -> None:
    seconds = long_sleep()
    process = transport.open(["sh", "-c", f"cat; sleep {seconds}; :"], timeout=20)
    process.close_stdin()
    wait_for(seconds, 1)
    process.close()
    wait_for(seconds, 0)


@pytest.mark.parametrize("guard", [True, False])
def test_writing_after_the_end_of_input_is_an_error(transport: Transport, guard: bool) -> None:
    with transport.open(["cat"], timeout=20, guard=guard) as process:
        process.close_stdin()
        with pytest.raises(BrokenPipeError):
            process.write(b"x", 5)


@pytest.mark.parametrize("guard", [True, False])
def test_writing_to_a_command_that_ended_is_an_error(transport: Transport, guard: bool) -> None:
    with transport.open(["true"], timeout=20, guard=guard) as process:
        assert process.wait(20).exit_status == 0
        with pytest.raises(BrokenPipeError):
            process.write(b"x" * 100, 5)


def test_without_guard_input_and_its_end_are_the_commands_own(transport: Transport) -> None:
    with transport.open(["sh", "-c", "wc -c; echo done"], timeout=20, guard=False) as process:
        process.write(b"x" * 3_000_000, 20)
        process.close_stdin()
        assert read_all(process)[0].split() == [b"3000000", b"done"]


def test_input_that_is_not_taken_runs_into_the_time_limit(transport: Transport) -> None:
    with transport.open(["sleep", "60"], timeout=20) as process:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            process.write(b"x" * 30_000_000, 1.0)
        assert time.monotonic() - began < 10
        with pytest.raises(BrokenPipeError):
            process.write(b"x", 1.0)
        process.close_stdin()


def test_reading_nothing_runs_into_the_time_limit_and_goes_on(transport: Transport) -> None:
    with transport.open(["sh", "-c", "sleep 1; echo late"], timeout=20) as process:
        with pytest.raises(TimeoutError):
            process.read(0.2)
        assert read_line(process) == b"late\n"


def test_waiting_has_a_deadline_and_drops_output(transport: Transport) -> None:
    with transport.open(["sh", "-c", "head -c 9000000 /dev/zero; sleep 0.5; exit 4"], timeout=20) as process:
        with pytest.raises(TimeoutError):
            process.wait(0.1)
        done = process.wait(20)
        assert (done.exit_status, done.stdout) == (4, b"")


def test_a_command_that_closes_its_outputs_and_runs_on_has_no_status_yet(transport: Transport) -> None:
    with transport.open(["sh", "-c", "exec >&- 2>&-; sleep 1; exit 5"], timeout=20) as process:
        assert process.read(20) is None
        with pytest.raises(TimeoutError):
            process.wait(0.1)
        assert process.wait(20).exit_status == 5


def test_a_slow_reader_holds_the_command_up_and_not_the_memory(transport: Transport) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    script = "head -c 200000000 /dev/zero; echo end >&2"
    with transport.open(["sh", "-c", script], timeout=20) as process:
        time.sleep(1.5)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 32 << 10  # KiB
        total = {Source.OUT: 0, Source.ERR: 0}
        # What was written last may come first: the two outputs are streams of their own.
        while (chunk := process.read(20)) is not None:
            total[chunk.source] += len(chunk.data)
        assert total == {Source.OUT: 200_000_000, Source.ERR: len("end\n")}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


def test_closing_ends_the_whole_group(transport: Transport) -> None:
    seconds = long_sleep()
    script = f"sleep {seconds} & (sleep {seconds} & wait) & trap '' TERM; sleep {seconds}; sleep {seconds}; :"
    process = transport.open(["sh", "-c", script], timeout=20)
    wait_for(seconds, 3)
    process.close()
    process.close()
    wait_for(seconds, 0)


def test_a_closed_process_reads_as_ended(transport: Transport) -> None:
    process = transport.open(["sleep", "60"], timeout=20)
    process.close()
    assert process.read(5) is None
    with pytest.raises(BrokenPipeError):
        process.write(b"x", 5)
    with pytest.raises(RemoteError) as caught:
        process.wait(5)
    assert caught.value.kind is FailureKind.LOST


def test_closing_a_process_wakes_its_reader(transport: Transport) -> None:
    process = transport.open(["sleep", "60"], timeout=20)
    ended = threading.Event()

    def read() -> None:
        assert process.read(60) is None
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    time.sleep(0.3)
    process.close()
    assert ended.wait(5)


def test_closing_the_transport_wakes_everyone_within_a_second(transport: Transport) -> None:
    seconds = long_sleep()
    processes = [transport.open(["sleep", seconds], timeout=20) for _ in range(8)]
    wait_for(seconds, 8)
    kinds: list[FailureKind] = []

    def read(process: Process) -> None:
        try:
            process.read(60)
        except RemoteError as error:
            kinds.append(error.kind)

    def run() -> None:
        try:
            transport.run(["true"], timeout=60)
        except RemoteError as error:
            kinds.append(error.kind)

    threads = [threading.Thread(target=read, args=(process,), daemon=True) for process in processes]
    threads.append(threading.Thread(target=run, daemon=True))
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    began = time.monotonic()
    transport.close()
    took = time.monotonic() - began
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
    assert took < 3
    assert transport.closed
    assert FailureKind.LOST in kinds
    assert set(kinds) == {FailureKind.LOST}
    wait_for(seconds, 0)
    transport.close()
    with pytest.raises(RemoteError) as caught:
        transport.run(["true"], timeout=5)
    assert caught.value.kind is FailureKind.LOST


def test_probing(transport: Transport) -> None:
    assert transport.probe(10) < 10
    transport.close()
    with pytest.raises(RemoteError) as caught:
        transport.probe(10)
    assert caught.value.kind is FailureKind.LOST
