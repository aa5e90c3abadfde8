"""Forwarded ports, the shell's command, and files written: without a droplet."""

from __future__ import annotations

import http.server
import json
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.telemetry.sample import ServerSample
from console.remote.errors import FailureKind, RemoteError
from console.remote.local_connection import local_connection
from console.remote.transport import Dialled
from console.services import export
from console.services.calls import ask_signature
from console.services.forward import AT_ONCE, Forward, Forwards
from console.services.shell import shell_command
from console.settings.schema import Droplet, Practice

METADATA = {
    "name": "echo",
    "versions": ["1"],
    "platform": "python",
    "inputs": [{"name": "INPUT", "datatype": "FP32", "shape": [-1, 4]}],
    "outputs": [{"name": "OUTPUT", "datatype": "FP32", "shape": [-1, 4]}],
}


class Triton(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = json.dumps(METADATA).encode() if self.path == "/v2/models/echo/versions/1" else b"{}"
        self.send_response(200 if len(body) > 2 else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def far_port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Triton) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def dial(host: str, port: int, timeout: float) -> Dialled:
    return local_connection("a", host, port, timeout)


def test_a_forward_listens_here_alone_and_carries_what_is_asked_there(far_port: int) -> None:
    forward = Forward(dial, "127.0.0.1", far_port)
    assert forward.local_port != far_port  # taken here by the far side itself
    assert ask_signature(forward.local_port, "echo", "1", 5).inputs[0].shape == (1, 4)
    with pytest.raises(OSError, match="404"):
        ask_signature(forward.local_port, "other", "1", 5)
    forward.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", forward.local_port), timeout=2)


def test_the_same_port_number_is_taken_where_it_is_free() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    forward = Forward(dial, "127.0.0.1", free)
    assert forward.local_port == free
    forward.close()


def test_what_cannot_be_reached_is_said_and_heals_by_itself(far_port: int) -> None:
    broken = threading.Event()
    broken.set()

    def sometimes(host: str, port: int, timeout: float) -> Dialled:
        if broken.is_set():
            raise RemoteError(FailureKind.LOST, "a is not connected just now")
        return dial(host, port, timeout)

    forward = Forward(sometimes, "127.0.0.1", far_port)
    with pytest.raises(OSError):
        ask_signature(forward.local_port, "echo", "1", 5)
    said = [forward.failure]
    broken.clear()
    assert ask_signature(forward.local_port, "echo", "1", 5).name == "echo"
    assert [*said, forward.failure] == ["a is not connected just now", None]
    forward.close()


def test_closing_ends_what_is_being_carried(far_port: int) -> None:
    forward = Forward(dial, "127.0.0.1", far_port)
    near = socket.create_connection(("127.0.0.1", forward.local_port), timeout=5)
    near.sendall(b"GET ")
    time.sleep(0.2)
    forward.close()
    near.settimeout(5)
    assert near.recv(1) == b""
    near.close()


def test_many_connections_at_once_and_one_after_the_other(far_port: int) -> None:
    forward = Forward(dial, "127.0.0.1", far_port)
    for _ in range(3):
        threads = [
            threading.Thread(target=ask_signature, args=(forward.local_port, "echo", "1", 10))
            for _ in range(AT_ONCE + 8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert ask_signature(forward.local_port, "echo", "1", 5).name == "echo"
    forward.close()


def test_all_ports_of_a_server(far_port: int) -> None:
    server = ServerSample("triton", "ready", http=f"127.0.0.1:{far_port}", metrics="[::1]:9", grpc=None)
    forwards = Forwards(dial, server)
    assert set(forwards.local) == {"http", "metrics"}
    forwards.close()


@pytest.mark.parametrize(
    ("droplet", "command"),
    [
        (Droplet("gpu"), ["ssh", "--", "gpu"]),
        (Droplet("a", host="1.2.3.4", user="root", port=2222), ["ssh", "-p", "2222", "--", "root@1.2.3.4"]),
        (Droplet("a", host="h", identity=("/k",), jump="b,c"), ["ssh", "-i", "/k", "-J", "b,c", "--", "h"]),
        (Droplet("a", host="h", jump="none"), ["ssh", "-o", "ProxyJump=none", "--", "h"]),
        (Droplet("a", host="-oProxyCommand=x"), ["ssh", "--", "-oProxyCommand=x"]),
        (Droplet("a", host="h", practice=Practice("/f/config", "/f", ())), ["ssh", "-F", "/f/config", "--", "h"]),
        (Droplet("local"), ["/bin/zsh"]),
    ],
)
def test_a_shell_goes_to_the_same_target(droplet: Droplet, command: list[str]) -> None:
    assert shell_command(droplet, environment={"SHELL": "/bin/zsh"}) == command


def test_keys_that_were_accepted_here_are_known_to_ssh_too(tmp_path: Path) -> None:
    accepted = tmp_path / "known hosts"
    accepted.write_text("")
    command = shell_command(Droplet("a"), accepted_keys=accepted)
    assert command[1:3] == [
        "-o",
        f'UserKnownHostsFile="~/.ssh/known_hosts" "~/.ssh/known_hosts2" "{accepted}"',
    ]


def test_files_are_private_new_and_have_plain_names(tmp_path: Path) -> None:
    first = export.write(tmp_path, "root@[::1]:22/../x", 0.0, {"csv": "a\n", "json": "{}"})
    again = export.write(tmp_path, "root@[::1]:22/../x", 0.0, {"csv": "b\n", "json": "{}"})
    assert len({*first, *again}) == 4
    for path in (*first, *again):
        assert path.parent == tmp_path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert first[0].read_text() == "a\n"
    with pytest.raises(OSError):
        export.write(tmp_path / "none", "a", 0.0, {"csv": ""})


def test_a_table_is_no_program_for_a_spreadsheet() -> None:
    assert export.table([("a", None, 1.5), ("=cmd()", "-1", "+x")]) == "a,,1.5\r\n'=cmd(),'-1,'+x\r\n"
