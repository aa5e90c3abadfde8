"""What a lost or silent connection does, on both sides."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from console.remote.errors import FailureKind, RemoteError
from tests.contract.conftest import Reach
from tests.contract.living import long_sleep, wait_for
from tests.lab.fixtures import ProxyMaker
from tests.lab.machine import Machine

pytestmark = pytest.mark.lab


def test_a_cut_line_is_told_at_once_and_ends_what_ran(
    reach: Reach, lab_machine: Machine, proxy: ProxyMaker
) -> None:
    line = proxy(lab_machine)
    transport = reach(lab_machine, proxy=line)
    seconds = long_sleep()
    script = f"trap '' TERM; sleep {seconds} & sleep {seconds}; sleep {seconds}; :"
    process = transport.open(["sh", "-c", script], timeout=20)
    wait_for(seconds, 2)
    line.cut()
    with pytest.raises(RemoteError) as caught:
        process.read(10)
    assert caught.value.kind is FailureKind.LOST
    assert transport.closed
    for call in (lambda: process.wait(5), lambda: transport.run(["true"], timeout=5), lambda: transport.probe(5)):
        with pytest.raises(RemoteError) as caught:
            call()
        assert caught.value.kind is FailureKind.LOST
    wait_for(seconds, 0)


def test_what_came_before_the_cut_can_still_be_read(reach: Reach, lab_machine: Machine, proxy: ProxyMaker) -> None:
    line = proxy(lab_machine)
    transport = reach(lab_machine, proxy=line)
    process = transport.open(["sh", "-c", "echo said; echo go >&2; exec sleep 60"], timeout=20)
    chunk = process.read(10)
    time.sleep(0.5)
    line.cut()
    deadline = time.monotonic() + 10
    while not transport.closed and time.monotonic() < deadline:
        time.sleep(0.02)
    assert chunk
    rest = process.read(5)
    assert rest
    assert sorted([chunk.data, rest.data]) == [b"go\n", b"said\n"]
    with pytest.raises(RemoteError) as caught:
        process.read(5)
    assert caught.value.kind is FailureKind.LOST


def test_a_silent_peer_is_noticed_by_probing(reach: Reach, lab_machine: Machine, proxy: ProxyMaker) -> None:
    line = proxy(lab_machine)
    transport = reach(lab_machine, proxy=line)
    process = transport.open(["sleep", "60"], timeout=20)
    failed: list[RemoteError] = []

    def read() -> None:
        try:
            process.read(60)
        except RemoteError as error:
            failed.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert transport.probe(10) < 10
    line.stall()
    with pytest.raises(RemoteError) as caught:
        transport.probe(0.5)
    assert caught.value.kind is FailureKind.LOST
    assert transport.closed
    reader.join(5)
    assert [error.kind for error in failed] == [FailureKind.LOST]


def test_every_call_keeps_its_deadline_on_a_silent_line(
    reach: Reach, lab_machine: Machine, proxy: ProxyMaker
) -> None:
    line = proxy(lab_machine)
    transport = reach(lab_machine, proxy=line)
    process = transport.open(["cat"], timeout=20)
    line.stall()
    began = time.monotonic()
    with pytest.raises(RemoteError) as caught:
        transport.run(["true"], timeout=0.5)
    assert caught.value.kind is FailureKind.COMMAND_TIMED_OUT
    with pytest.raises(RemoteError):
        transport.open(["true"], timeout=0.5)
    with pytest.raises(TimeoutError):
        process.read(0.5)
    with pytest.raises(TimeoutError):
        process.wait(0.5)
    with pytest.raises(TimeoutError):
        process.write(b"x" * 3_000_000, 0.5)
    process.close()
    assert time.monotonic() - began < 10
    line.resume()
    assert transport.run(["echo", "back"], timeout=20).stdout == b"back\n"


def test_closing_on_a_silent_line_takes_no_longer(reach: Reach, lab_machine: Machine, proxy: ProxyMaker) -> None:
    line = proxy(lab_machine)
    transport = reach(lab_machine, proxy=line)
    transport.open(["cat"], timeout=20)
    line.stall()
    began = time.monotonic()
    transport.close()
    assert time.monotonic() - began < 3


def test_the_threads_of_a_connection_end_with_it(reach: Reach, lab_machine: Machine) -> None:
    before = threading.active_count()
    transport = reach(lab_machine)
    transport.run(["true"], timeout=20)
    transport.close()
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_a_command_costs_two_round_trips(reach: Reach, lab_machine: Machine, proxy: ProxyMaker) -> None:
    transport = reach(lab_machine, proxy=proxy(lab_machine, delay=0.25))
    took: list[float] = []
    while min(took, default=9.0) >= 1.45 and len(took) < 5:  # a busy machine may add what it likes
        began = time.monotonic()
        transport.run(["true"], timeout=20)
        took.append(time.monotonic() - began)
    assert 1.0 <= min(took) < 1.45  # a third round trip would make it 1.5


def test_no_bare_connection_is_ever_made(reach: Reach, lab_machine: Machine) -> None:
    # A probe is a message within the login, never a connection of its own.
    transport = reach(lab_machine)
    connect = socket.socket.connect
    made: list[object] = []

    def counting(self: socket.socket, address: object) -> None:
        made.append(address)
        connect(self, address)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", counting)
        transport.probe(10)
        transport.run(["true"], timeout=10)
    assert made == []
