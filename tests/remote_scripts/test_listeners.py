from __future__ import annotations

import socket

from remote_scripts.system.listeners import interfaces, listening, own_addresses
from tests.remote_scripts.fake_droplet import FakeDroplet

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
TCP = HEAD + (
    "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 0 1 1 0 100 0 0 10 0\n"
    "   1: 00000000:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 0 2 1 0 100 0 0 10 0\n"
    "   2: 0100007F:1F40 0100007F:8F0A 01 00000000:00000000 00:00000000 00000000     0 0 3 1 0 20 4 30 10 -1\n"
)
TCP6 = HEAD + (
    "   0: 00000000000000000000000000000000:1F42 00000000000000000000000000000000:0000 0A 0:0 0 0 0 0\n"
    "   1: 0000000000000000FFFF00000100007F:1F43 00000000000000000000000000000000:0000 0A 0:0 0 0 0 0\n"
)


def test_the_kernels_tables(droplet: FakeDroplet) -> None:
    droplet.write("/proc/7/net/tcp", TCP)
    droplet.write("/proc/7/net/tcp6", TCP6)
    assert listening(str(droplet.root / "proc"), 7) == {
        8000: {"127.0.0.1"},
        8001: {"0.0.0.0"},
        8002: {"::"},
        8003: {"127.0.0.1"},
    }


def test_this_machines_own_table() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
    ):
        found = listening("/proc", "self")
        assert "127.0.0.1" in found[server.getsockname()[1]]
        assert "::1" in found[six.getsockname()[1]]
    assert b"lo" in interfaces("/proc", "self")


def test_rubbish_and_nothing(droplet: FakeDroplet) -> None:
    droplet.write("/proc/7/net/tcp", b"x 0A y\n\xff 0A \n a:b c 0A 0A \n 0: zz:1F40 0 0A \n 0: 00:xx 0 0A 0 0A ")
    proc = str(droplet.root / "proc")
    assert listening(proc, 7) == {}
    assert listening(proc, 8) == {}
    assert own_addresses(proc, 8) == []
    assert interfaces(proc, 8) == frozenset()


def test_the_addresses_of_a_container(droplet: FakeDroplet) -> None:
    # As seen in a Docker 20.10 container.
    trie = """Main:
  +-- 0.0.0.0/0 3 0 5
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
     +-- 172.17.0.0/16 2 0 2
        |-- 172.17.0.2
           /32 host LOCAL
        |-- 172.17.255.255
           /32 link BROADCAST
Local:
        |-- 172.17.0.2
           /32 host LOCAL
"""
    droplet.write("/proc/7/net/fib_trie", trie)
    assert own_addresses(str(droplet.root / "proc"), 7) == ["172.17.0.2"]
