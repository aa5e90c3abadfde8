"""Sockets of a process's network namespace, from /proc/PID/net."""

from __future__ import annotations

import socket
import sys

from remote_scripts.files import read_bytes

_LIMIT = 16 << 20
_LISTEN = b" 0A "


def listening(proc: str, pid: int | str) -> dict[int, set[str]]:
    """TCP ports that somebody listens on there, each with its numeric addresses; empty where it cannot be read."""
    found: dict[int, set[str]] = {}
    for name in ("tcp", "tcp6"):
        try:
            table = read_bytes(f"{proc}/{pid}/net/{name}", _LIMIT)
        except OSError:
            continue
        at = table.find(_LISTEN)
        while at >= 0:
            line = table[table.rfind(b"\n", 0, at) + 1 : table.find(b"\n", at)]
            _add(found, line)
            at = table.find(_LISTEN, at + 1)
    return found


def own_addresses(proc: str, pid: int | str) -> list[str]:
    """IPv4 addresses of the namespace's interfaces, loopback left out, from /proc/PID/net/fib_trie."""
    try:
        text = read_bytes(f"{proc}/{pid}/net/fib_trie", _LIMIT).decode("ascii", "replace")
    except OSError:
        return []
    found: list[str] = []
    last = ""
    for line in text.splitlines():
        word = line.strip()
        if word.startswith("|--"):
            last = word[3:].strip()
        elif word == "/32 host LOCAL" and not last.startswith("127.") and last not in found:
            found.append(last)
    return found


def interfaces(proc: str, pid: int | str) -> frozenset[bytes]:
    """Names of the namespace's interfaces; empty where they cannot be read."""
    try:
        lines = read_bytes(f"{proc}/{pid}/net/dev").splitlines()[2:]
    except OSError:
        return frozenset()
    return frozenset(line.partition(b":")[0].strip() for line in lines)


def _add(found: dict[int, set[str]], line: bytes) -> None:
    fields = line.split(None, 4)
    if len(fields) < 4 or fields[3] != b"0A":
        return
    address, _, port = fields[1].partition(b":")
    try:
        shown = _address(address)
        found.setdefault(int(port, 16), set()).add(shown)
    except (ValueError, OSError):
        return  # no line of the kernel's


def _address(text: bytes) -> str:
    """The kernel prints each 32-bit word in the machine's own byte order (net/ipv4/tcp_ipv4.c)."""
    packed = bytes.fromhex(text.decode("ascii"))
    if sys.byteorder == "little":
        packed = b"".join(packed[at : at + 4][::-1] for at in range(0, len(packed), 4))
    if len(packed) == 16 and packed.startswith(b"\0" * 10 + b"\xff\xff"):
        packed = packed[12:]
    return socket.inet_ntop(socket.AF_INET6 if len(packed) == 16 else socket.AF_INET, packed)
