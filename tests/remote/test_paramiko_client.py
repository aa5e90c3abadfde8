"""The gaps of paramiko that are closed, each against a real sshd."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from console.remote.login.login import LoginContext, login
from console.remote.prompts import NoPrompter
from console.remote.ssh.paramiko_api import Channel, ChannelRefused, Transport
from tests.remote.conftest import Enter, StartSshd
from tests.remote.stalling_proxy import StallingProxy

pytestmark = pytest.mark.lab


def until(condition: object, seconds: float = 10.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def run(transport: Transport, command: str) -> Channel:
    channel = transport.open_channel(timeout=10)
    channel.settimeout(10)
    channel.start(command)
    return channel


def test_a_signal_that_ended_a_command_is_known(start_sshd: StartSshd, enter: Enter) -> None:
    channel = run(enter(start_sshd().target()).transport, "kill -TERM $$")
    until(lambda: channel.closed)
    assert channel.exit_signal == "TERM"
    assert channel.exit_status == -1


def test_both_outputs_and_the_exit_status_announce_themselves(start_sshd: StartSshd, enter: Enter) -> None:
    transport = enter(start_sshd().target()).transport
    channel = transport.open_channel(timeout=10)
    changed = threading.Event()
    channel.on_change(changed.set)
    channel.start("echo out; echo err >&2; exit 7")
    assert channel.started(10)
    assert changed.wait(10)
    until(lambda: channel.exit_status == 7 and channel.eof_received)
    channel.settimeout(5)
    assert channel.recv(100) == b"out\n"
    assert channel.recv_stderr(100) == b"err\n"


def test_a_refused_channel_is_told_to_the_thread_that_asked(start_sshd: StartSshd, enter: Enter) -> None:
    transport = enter(start_sshd("MaxSessions 3").target()).transport

    def open_one(_: int) -> Channel | ChannelRefused:
        try:
            return transport.open_channel(timeout=10)
        except ChannelRefused as error:
            return error

    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(open_one, range(12)))
    refusals = [result for result in results if isinstance(result, ChannelRefused)]
    assert len(refusals) == 9
    assert all(refusal.text == "open failed" for refusal in refusals)
    assert transport.ping(5) < 5


def test_a_ping_comes_back_and_many_at_once_do_too(start_sshd: StartSshd, enter: Enter) -> None:
    transport = enter(start_sshd().target()).transport
    with ThreadPoolExecutor(8) as pool:
        assert all(seconds < 5 for seconds in pool.map(lambda _: transport.ping(5), range(32)))
    assert transport.silent_for() < 5


def test_a_silent_line_is_noticed_even_with_a_writer_stuck_on_it(
    start_sshd: StartSshd, context: LoginContext
) -> None:
    server = start_sshd()
    with StallingProxy(server.port) as proxy:
        target = server.target(port=proxy.port, strict_host_key_checking="no", known_hosts_files=())
        transport = login(target, prompter=NoPrompter(), deadline=20, context=context).transport
        channels = [run(transport, "cat >/dev/null") for _ in range(6)]
        proxy.stall()

        def write(channel: Channel) -> None:
            try:
                while channel.send(b"x" * 30_000):
                    continue
            except (OSError, EOFError):
                return

        writers = [threading.Thread(target=write, args=(channel,), daemon=True) for channel in channels]
        for writer in writers:
            writer.start()
        time.sleep(1)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            transport.ping(1.0)
        assert time.monotonic() - began < 4
        transport.close()
        for writer in writers:
            writer.join(15)
        assert not any(writer.is_alive() for writer in writers)


def test_the_threads_of_a_closed_connection_end_at_once(start_sshd: StartSshd, enter: Enter) -> None:
    login = enter(start_sshd().target())
    before = [t for t in threading.enumerate() if type(t).__name__ == "ClientTransport"]
    login.close()
    login.close()
    until(lambda: not any(thread.is_alive() for thread in before), 3)
    with pytest.raises(EOFError):
        login.transport.open_channel(timeout=1)
    with pytest.raises(EOFError):
        login.transport.ping(1)


def test_the_end_of_the_session_s_sshd_is_noticed(start_sshd: StartSshd, enter: Enter) -> None:
    login = enter(start_sshd().target())
    channel = run(login.transport, "echo $PPID; sleep 60")
    session = channel.recv(20).strip().decode()
    run(login.transport, f"kill {session}")
    until(lambda: not login.transport.is_active())
    assert channel.closed


def test_nothing_is_logged_where_no_one_asked_for_logs() -> None:
    script = (
        "import logging, console.remote.ssh.paramiko_client; logging.getLogger('paramiko.transport').error('noise')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stderr == b""
