"""Processes from /proc that are Triton servers, found cheaply enough to look every other second."""

from __future__ import annotations

import os
from dataclasses import dataclass

from remote_scripts.files import read_bytes

COMM = b"tritonserver\n"
FRESH_LOOKS = 3
"""A process is looked at this often after it came: it may still be the shell that is about to become a server."""
FULL_EVERY = 10
"""Looks between two over every process: a long-lived shell may become a server, too."""
_ARGUMENTS_LIMIT = 128 << 10


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """Of /proc/PID/stat: the state's letter, the parent, and the start in clock ticks since boot."""

    state: str
    parent: int
    start: int

    @property
    def alive(self) -> bool:
        """Not a zombie: a dead child that nobody waited for holds nothing and serves nobody."""
        return self.state not in "ZXx"


class ProcessTable:
    """Which processes are Triton servers, by their command name."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._fresh: dict[int, int] = {}
        self._known: set[int] = set()
        self._looks = 0

    def look(self) -> set[int]:
        """The processes that were found to be ``tritonserver`` now; of the older ones only on a full look.

        Empty where /proc cannot be listed.
        """
        try:
            now = {int(name) for name in os.listdir(self._proc) if name.isdecimal()}  # noqa: PTH208 - names, no paths
        except OSError:
            return set()
        full = self._looks % FULL_EVERY == 0
        self._looks += 1
        for pid in now - self._known:
            self._fresh[pid] = FRESH_LOOKS
        self._known = now
        found: set[int] = set()
        for pid in now if full else list(self._fresh):
            if pid in self._fresh:
                self._fresh[pid] -= 1
                if self._fresh[pid] <= 0 or pid not in now:
                    del self._fresh[pid]
            if pid in now and self._comm(pid) == COMM:
                found.add(pid)
        return found

    def _comm(self, pid: int) -> bytes:
        try:
            return read_bytes(f"{self._proc}/{pid}/comm", 64)
        except OSError:
            return b""


def read_stat(proc: str, pid: int) -> ProcessStat | None:
    """The process's state; None where it is gone or cannot be read."""
    try:
        text = read_bytes(f"{proc}/{pid}/stat", 4096)
        # The name stands in parentheses and may hold anything, parentheses too: what follows the last one counts.
        fields = text[text.rindex(b")") + 2 :].split()
        return ProcessStat(fields[0].decode("ascii", "replace"), int(fields[1]), int(fields[19]))
    except (OSError, ValueError, IndexError):
        return None


def read_arguments(proc: str, pid: int) -> list[str]:
    """The process's argument list; empty where it is gone, a zombie, or a kernel thread."""
    try:
        text = read_bytes(f"{proc}/{pid}/cmdline", _ARGUMENTS_LIMIT)
    except OSError:
        return []
    words = text.decode("utf-8", "replace").split("\0")
    return words[:-1] if words and not words[-1] else words


def namespace(proc: str, pid: int | str, kind: str) -> int | None:
    """The inode of a process's namespace ("net", "pid"); None where it may not be seen: another user's."""
    try:
        return os.stat(f"{proc}/{pid}/ns/{kind}").st_ino  # noqa: PTH116 - as the rest here
    except OSError:
        return None
