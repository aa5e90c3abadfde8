"""Listening sockets and the processes that own them, from /proc: no tool is needed, and none can lie about it."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from time import monotonic
from typing import Any

from remote_scripts.facts_parts.facts_part import Part
from remote_scripts.files import cut, read_text
from remote_scripts.system.cgroups import container_of, unit_of

_TABLES = (("tcp", "/proc/net/tcp"), ("tcp", "/proc/net/tcp6"), ("udp", "/proc/net/udp"), ("udp", "/proc/net/udp6"))
_LISTENING = {"tcp": "0A", "udp": "07"}
"""TCP_LISTEN; a UDP socket that is bound and not connected is in TCP_CLOSE (include/net/tcp_states.h)."""
_MAX = 1000
_PATIENCE = 4.0
"""Seconds for finding owners: a machine may have a million open files."""


def read(part: Part) -> list[dict[str, Any]]:
    """With ``protocol``, ``address``, ``port``; where known ``pid``, ``process``, ``unit`` or ``container``."""
    sockets = list(_sockets(part))[:_MAX]
    owners = _owners(part, {inode for *_, inode in sockets})
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    unknown = 0
    for protocol, address, port, inode in sockets:
        entry: dict[str, Any] = {"protocol": protocol, "address": address, "port": port}
        if inode in owners:
            entry.update(owners[inode])
        else:
            unknown += 1
        found.setdefault((protocol, address, port), entry)  # SO_REUSEPORT: several sockets, one service
    if unknown:
        who = "only root sees other people's processes" if os.geteuid() else "their processes are not visible here"
        part.miss("/pid", f"{unknown} sockets without an owner: {who}")
    return sorted(found.values(), key=lambda entry: (entry["port"], entry["protocol"], entry["address"]))


def _sockets(part: Part) -> Iterator[tuple[str, str, int, int]]:
    read_any = False
    for protocol, file in _TABLES:
        try:
            lines = part.text(file, 16 << 20).splitlines()[1:]
        except OSError as error:
            if file.endswith("/tcp"):
                raise
            if "6" not in file:
                part.miss(f"/{protocol}", f"{file} cannot be read: {error.strerror}")
            continue
        read_any = True
        for line in lines:
            words = line.split(None, 10)
            if len(words) < 10 or words[3] != _LISTENING[protocol]:
                continue
            host, _, port = words[1].partition(":")
            remote_port = words[2].rpartition(":")[2]
            if protocol == "udp" and remote_port != "0000":
                continue
            try:
                yield protocol, _address(host), int(port, 16), int(words[9])
            except (ValueError, OSError, struct.error):
                continue
    if not read_any:
        part.miss("", "no table of sockets can be read")


def _address(text: str) -> str:
    """The kernel prints each 32-bit word in the machine's own byte order (net/ipv4/tcp_ipv4.c)."""
    packed = bytes.fromhex(text)
    if sys.byteorder == "little":
        packed = b"".join(packed[at : at + 4][::-1] for at in range(0, len(packed), 4))
    return socket.inet_ntop(socket.AF_INET6 if len(packed) == 16 else socket.AF_INET, packed)


def _owners(part: Part, wanted: set[int]) -> dict[int, dict[str, Any]]:
    """Owners by inode; as many as are found in time."""
    proc = str(part.call.resolve("/proc"))
    left = set(wanted)
    found: dict[int, dict[str, Any]] = {}
    deadline = monotonic() + _PATIENCE
    for pid in sorted((int(name) for name in part.names("/proc", 1 << 20) if name.isdecimal()), reverse=True):
        if not left:
            break
        if monotonic() > deadline:
            part.miss("/pid", f"not all owners were found within {_PATIENCE:g} s")
            break
        mine = _inodes(f"{proc}/{pid}/fd") & wanted
        if mine:
            # From the youngest: a socket that systemd or an sshd passed on belongs to who serves it.
            owner = _owner(proc, pid)
            for inode in mine & left:
                found[inode] = owner
            left -= mine
    return found


def _inodes(folder: str) -> set[int]:
    found = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    target = os.readlink(entry.path)  # noqa: PTH115 - text such as "socket:[123]", no path
                except OSError:
                    continue
                if target.startswith("socket:["):
                    found.add(int(target[8:-1]))
    except (OSError, ValueError):
        return found
    return found


def _owner(proc: str, pid: int) -> dict[str, Any]:
    owner: dict[str, Any] = {"pid": pid}
    try:
        owner["process"] = cut(read_text(f"{proc}/{pid}/comm", 64).strip())
        cgroup = read_text(f"{proc}/{pid}/cgroup", 1 << 14)
    except OSError:
        return owner  # it has just ended
    inside, unit = container_of(cgroup), unit_of(cgroup)
    if inside is not None:
        owner["container"] = inside[1]
    elif unit is not None:
        owner["unit"] = cut(unit)
    return owner
