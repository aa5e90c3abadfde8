"""The known_hosts files of this process: the user's and the system's, read; the app-owned one, read and written."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from console.remote.host_keys import known_hosts
from console.remote.host_keys.known_hosts import Line
from console.remote.target import Target

_Stamp = tuple[int, int, int]


def lookup_name(target: Target) -> str:
    """The name under which known_hosts keeps this target."""
    return known_hosts.lookup_name(target.host, target.port, target.host_key_alias)


def bare_name(target: Target) -> str:
    """The name without the port."""
    return known_hosts.lookup_name(target.host, 22, target.host_key_alias)


@dataclass(frozen=True, slots=True)
class Known:
    """What the files say about one host.

    Attributes:
        lines: Those that are about it, by its name with or without the port.
        notes: Files and lines that could not be read, of all.
    """

    lines: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()


class KnownHostsStore:
    """Files are read again only where they changed, and searched once for each host. For all threads.

    A hashed file of some thousand lines takes tens of milliseconds to search, and a login looks several times.
    """

    def __init__(self, app_file: Path) -> None:
        self.app_file = app_file
        self._lock = threading.Lock()
        self._files: dict[str, tuple[_Stamp, list[Line], list[str]]] = {}
        self._hosts: dict[tuple[str, str, tuple[str, ...]], tuple[tuple[_Stamp | None, ...], Known]] = {}
        self._once: dict[str, bytes] = {}

    def about(self, target: Target) -> Known:
        """What is known about a target."""
        files = (*target.known_hosts_files, str(self.app_file))
        name, bare = lookup_name(target), bare_name(target)
        with self._lock:
            stamps = tuple(self._refresh(file) for file in files)
            known = self._hosts.get((name, bare, files))
            if known is None or known[0] != stamps:
                known = (stamps, self._search(files, stamps, name, bare))
                self._hosts[name, bare, files] = known
            return known[1]

    def _refresh(self, file: str) -> _Stamp | None:
        try:
            status = Path(file).stat()
        except OSError:
            return None
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        held = self._files.get(file)
        if held is None or held[0] != stamp:
            self._files[file] = (stamp, *known_hosts.read([file]))
        return stamp

    def _search(self, files: tuple[str, ...], stamps: tuple[_Stamp | None, ...], name: str, bare: str) -> Known:
        held = [self._files[file] for file, stamp in zip(files, stamps, strict=True) if stamp is not None]
        lines = tuple(
            line
            for _stamp, found, _notes in held
            for line in found
            if known_hosts.matches(line.hosts, name) or (bare != name and known_hosts.matches(line.hosts, bare))
        )
        return Known(lines, tuple(note for _stamp, _found, notes in held for note in notes))

    def once(self, target: Target) -> bytes | None:
        """The key that was accepted for this session."""
        with self._lock:
            return self._once.get(lookup_name(target))

    def keep_once(self, target: Target, blob: bytes) -> None:
        """Accept a key for this session."""
        with self._lock:
            self._once[lookup_name(target)] = blob

    def keep(self, target: Target, blob: bytes) -> None:
        """Write a key into the app-owned file.

        Raises:
            OSError: That cannot be.
        """
        with self._lock:
            known_hosts.add(self.app_file, lookup_name(target), blob)
            self._once.pop(lookup_name(target), None)
