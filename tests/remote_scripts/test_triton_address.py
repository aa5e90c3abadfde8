from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from remote_scripts.system.namespaces import socket_in
from remote_scripts.triton.address import find_endpoints
from remote_scripts.triton.flags import Flags
from tests.remote_scripts.fake_droplet import FakeDroplet
from tests.remote_scripts.test_listeners import HEAD


def http(droplet: FakeDroplet, flags: Flags, *, net: int = 1) -> tuple[tuple[str, int], str, bool]:
    droplet.triton(10, net=net)
    endpoints = find_endpoints(str(droplet.root / "proc"), 10, flags, {}, contained=net != 1)
    assert endpoints.http is not None
    return endpoints.http.address, endpoints.http.shown, endpoints.http.connect is not None


@pytest.mark.parametrize(
    ("given", "address", "shown"),
    [
        ("0.0.0.0", "127.0.0.1", "0.0.0.0:8000"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1:8000"),
        ("10.1.2.3", "10.1.2.3", "10.1.2.3:8000"),
        ("::", "::1", "[::]:8000"),
        ("::1", "::1", "[::1]:8000"),
        ("localhost", "127.0.0.1", "127.0.0.1:8000"),
    ],
)
def test_where_a_server_is_asked(droplet: FakeDroplet, given: str, address: str, shown: str) -> None:
    assert http(droplet, Flags(http_address=given)) == ((address, 8000), shown, False)


def test_a_name_is_what_is_bound_to_the_port(droplet: FakeDroplet) -> None:
    line = "   0: 0302010A:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1\n"
    droplet.write("/proc/10/net/tcp", HEAD + line)
    assert http(droplet, Flags(http_address="gpu-box"))[0] == ("10.1.2.3", 8000)


def test_an_endpoint_that_is_off_is_none(droplet: FakeDroplet) -> None:
    droplet.triton(10)
    endpoints = find_endpoints(
        str(droplet.root / "proc"), 10, Flags(http_port=None, metrics_port=None), {}, contained=False
    )
    assert endpoints.http is None
    assert endpoints.metrics is None
    assert endpoints.grpc is not None


def test_a_server_in_another_namespace_is_asked_there(
    droplet: FakeDroplet, monkeypatch: pytest.MonkeyPatch
) -> None:
    droplet.write("/proc/10/net/fib_trie", "  |-- 172.17.0.2\n    /32 host LOCAL\n")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert http(droplet, Flags(), net=2) == (("127.0.0.1", 8000), "172.17.0.2:8000", True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert http(droplet, Flags(), net=2) == (("172.17.0.2", 8000), "172.17.0.2:8000", False)


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """A process that listens on 127.0.0.1:7777 in a network namespace of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a network namespace")
    serve = (
        "import socket, subprocess; subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True);"
        "s = socket.create_server(('127.0.0.1', 7777)); print('up', flush=True); s.accept()[0].sendall(b'there')"
    )
    process = subprocess.Popen(["unshare", "--net", "python3", "-c", serve], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    yield process.pid
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_socket_in_another_namespace_reaches_what_listens_there(elsewhere: int) -> None:
    here = Path("/proc/thread-self/ns/net").stat().st_ino
    with socket_in(f"/proc/{elsewhere}/ns/net")(socket.AF_INET) as there:
        assert Path("/proc/thread-self/ns/net").stat().st_ino == here
        there.settimeout(5)
        there.connect(("127.0.0.1", 7777))
        assert there.recv(10) == b"there"


def test_a_namespace_that_is_gone_is_an_error_and_leaves_no_descriptor() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError):
        socket_in("/proc/1/ns/nowhere")(socket.AF_INET)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
