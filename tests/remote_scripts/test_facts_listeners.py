from __future__ import annotations

import socket
from pathlib import Path

import pytest

from remote_scripts.call import Call
from remote_scripts.facts_parts import facts_listeners
from remote_scripts.facts_parts.facts_part import Part
from tests.remote_scripts.facts_lab import Pretended, Sink

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def row(local: str, state: str, inode: int, remote: str = "00000000:0000") -> str:
    return (
        f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0 100 0\n"
    )


def test_this_machines_own_sockets_have_this_process_as_owner() -> None:
    part = Part(Call({}, Sink()), "listeners")
    with (
        socket.socket() as tcp,
        socket.socket(socket.AF_INET6) as six,
        socket.socket(type=socket.SOCK_DGRAM) as udp,
    ):
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        six.bind(("::1", 0))
        six.listen()
        udp.bind(("127.0.0.1", 0))
        wanted = {
            ("tcp", "127.0.0.1", tcp.getsockname()[1]),
            ("tcp", "::1", six.getsockname()[1]),
            ("udp", "127.0.0.1", udp.getsockname()[1]),
        }
        found = {(one["protocol"], one["address"], one["port"]): one for one in facts_listeners.read(part)}
    assert wanted <= set(found)
    import os

    assert {found[key]["pid"] for key in wanted} == {os.getpid()}
    assert all(found[key]["process"] for key in wanted)


@pytest.fixture
def droplet(tmp_path: Path) -> Pretended:
    return Pretended(tmp_path)


def test_owners_units_and_containers(droplet: Pretended) -> None:
    rows = row("00000000:0016", "0A", 11) + row("0100007F:1F40", "0A", 12) + row("00000000:1F41", "01", 13)
    droplet.file("/proc/net/tcp", HEAD + rows + "garbage\n")
    droplet.file(
        "/proc/net/tcp6", HEAD + row("00000000000000000000000001000000:1F42", "0A", 14, "0" * 32 + ":0000")
    )
    droplet.file(
        "/proc/net/udp", HEAD + row("3500007F:0035", "07", 15) + row("0100007F:0036", "07", 16, "0100007F:0001")
    )
    container = "ab" * 32
    for pid, name, inode, cgroup in (
        (54, "sshd", 11, "0::/system.slice/ssh.service\n"),
        (1, "systemd", 11, "0::/init.scope\n"),
        (99, "tritonserver", 12, f"0::/system.slice/docker-{container}.scope\n"),
    ):
        droplet.file(f"/proc/{pid}/comm", name + "\n")
        droplet.file(f"/proc/{pid}/cgroup", cgroup)
        droplet.link(f"/proc/{pid}/fd/3", f"socket:[{inode}]")
        droplet.link(f"/proc/{pid}/fd/0", "/dev/null")
    found, missing = droplet.read(facts_listeners.read, "listeners")
    assert found == [
        {"protocol": "tcp", "address": "0.0.0.0", "port": 22, "pid": 54, "process": "sshd", "unit": "ssh.service"},
        {"protocol": "udp", "address": "127.0.0.53", "port": 53},
        {"protocol": "tcp", "address": "127.0.0.1", "port": 8000, "pid": 99, "process": "tritonserver",
         "container": container},
        {"protocol": "tcp", "address": "::1", "port": 8002},
    ]  # fmt: skip
    assert missing["/listeners/pid"].startswith("2 sockets without an owner")


def test_many_sockets_are_bounded(droplet: Pretended) -> None:
    droplet.file(
        "/proc/net/tcp", HEAD + "".join(row(f"0100007F:{port:04X}", "0A", port) for port in range(1, 3001))
    )
    found, _ = droplet.read(facts_listeners.read, "listeners")
    assert len(found) == 1000


def test_no_table_is_an_error_of_the_part(droplet: Pretended) -> None:
    with pytest.raises(FileNotFoundError):
        droplet.read(facts_listeners.read, "listeners")
