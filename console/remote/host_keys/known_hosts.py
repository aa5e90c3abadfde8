"""known_hosts files as sshd(8) describes them: read all of them, write only the app-owned one.

paramiko's reader raises on the markers ``@cert-authority`` and ``@revoked`` and knows no wildcards.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hmac
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from console.remote.ssh import ssh_wire

_MAX_BYTES = 32 << 20


class Marker(Enum):
    """What a line says about its key."""

    HOST = ""
    AUTHORITY = "@cert-authority"
    REVOKED = "@revoked"


@dataclass(frozen=True, slots=True)
class Line:
    """One line that could be read.

    Attributes:
        file: Where it stands ...
        number: ... counted from 1.
        marker: What the line says.
        hosts: Its patterns, or the one hashed name.
        blob: The public key.
    """

    file: str
    number: int
    marker: Marker
    hosts: str
    blob: bytes

    @property
    def key_type(self) -> str:
        """Such as "ssh-ed25519"."""
        return ssh_wire.key_type(self.blob)

    @property
    def where(self) -> str:
        """``file:line``, for people."""
        return f"{self.file}:{self.number}"

    def removable(self) -> bool:
        """Whether ``ssh-keygen -R`` takes this line away: it leaves markers and patterns alone."""
        return self.marker is Marker.HOST and not any(c in self.hosts for c in "*?!")


def lookup_name(host: str, port: int, alias: str | None) -> str:
    """The name under which ssh keeps a host: the alias as it is, else ``host`` or ``[host]:port``, lower case."""
    if alias is not None:
        return alias.lower()
    return host.lower() if port == 22 else f"[{host.lower()}]:{port}"


def read(files: Iterable[str]) -> tuple[list[Line], list[str]]:
    """All lines of all files, missing files left out.

    Returns:
        The lines, and for people a note for each line or file that could not be read.
    """
    lines: list[Line] = []
    notes: list[str] = []
    for file in files:
        try:
            with Path(file).open("rb") as handle:
                data = handle.read(_MAX_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            notes.append(f"{file}: {error.strerror or error}")
            continue
        for number, raw in enumerate(data.splitlines(), 1):
            text = raw.decode("utf-8", "replace").strip()
            if not text or text.startswith("#"):
                continue
            try:
                lines.append(_parse(file, number, text))
            except ValueError as error:
                notes.append(f"{file}:{number}: {error}")
    return lines, notes


def _parse(file: str, number: int, text: str) -> Line:
    words = text.split()
    marker = Marker.HOST
    if words[0].startswith("@"):
        try:
            marker = Marker(words.pop(0))
        except ValueError:
            raise ValueError("a marker that is not known") from None
    if len(words) < 3:
        raise ValueError("names, key type and key are wanted")
    try:
        blob = base64.b64decode(words[2], validate=True)
        key_type = ssh_wire.key_type(blob)
    except (binascii.Error, ssh_wire.WireError):
        raise ValueError("the key is damaged") from None
    if key_type != words[1]:
        raise ValueError(f"says {words[1]!r}, but the key is of type {key_type!r}")
    return Line(file, number, marker, words[0], blob)


def holds_key(line: bytes, blob: bytes) -> bool:
    """Whether a line of a list of public keys holds this one."""
    return base64.b64encode(blob) in line.split()


def matches(hosts: str, name: str) -> bool:
    """Whether a line's patterns mean this lookup name: hashed, or a list with ``*``, ``?`` and ``!``."""
    if hosts.startswith("|1|"):
        try:
            _, _, salt, digest = hosts.split("|")
            wanted = hmac.digest(base64.b64decode(salt), name.encode(), "sha1")
            return hmac.compare_digest(wanted, base64.b64decode(digest))
        except (ValueError, binascii.Error):
            return False
    matched = False
    for pattern in hosts.lower().split(","):
        negated = pattern.startswith("!")
        if _wildcard(pattern[negated:], name):
            if negated:
                return False
            matched = True
    return matched


def _wildcard(pattern: str, name: str) -> bool:
    # "[" is part of a name such as [host]:2222 here, never a set.
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


class Verdict(Enum):
    """What the files say about a key."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict and the lines that led to it.

    Attributes:
        verdict: The verdict.
        lines: Those that match the key, or contradict it, or revoke it.
        other_types: Key types under which the host is known, where this type is not.
    """

    verdict: Verdict
    lines: tuple[Line, ...] = ()
    other_types: tuple[str, ...] = ()


def check_key(lines: Iterable[Line], name: str, bare_name: str, blob: bytes) -> Finding:
    """Compare a plain host key with the files, as ssh does.

    Args:
        lines: Of all files.
        name: The lookup name.
        bare_name: The host without its port: a key known there is accepted for any port, but contradicts nothing.
        blob: The key that the server proved to hold.
    """
    lines = list(lines)
    revoked = revocation(lines, name, blob)
    if revoked is not None:
        return Finding(Verdict.REVOKED, (revoked,))
    ours = [line for line in lines if line.marker is Marker.HOST and matches(line.hosts, name)]
    same = tuple(line for line in ours if line.blob == blob)
    if same:
        return Finding(Verdict.KNOWN, same)
    contradicting = tuple(line for line in ours if line.key_type == ssh_wire.key_type(blob))
    if contradicting:
        return Finding(Verdict.CHANGED, contradicting)
    bare = tuple(
        line
        for line in lines
        if line.marker is Marker.HOST and line.blob == blob and matches(line.hosts, bare_name)
    )
    if bare:
        return Finding(Verdict.KNOWN, bare)
    return Finding(Verdict.UNKNOWN, other_types=tuple(dict.fromkeys(line.key_type for line in ours)))


def revocation(lines: Iterable[Line], name: str, blob: bytes) -> Line | None:
    """The ``@revoked`` line for this key and host, if there is one."""
    return next(
        (
            line
            for line in lines
            if line.marker is Marker.REVOKED and line.blob == blob and matches(line.hosts, name)
        ),
        None,
    )


def authorities(lines: Iterable[Line], name: str) -> list[Line]:
    """The ``@cert-authority`` lines for this host."""
    return [line for line in lines if line.marker is Marker.AUTHORITY and matches(line.hosts, name)]


def add(file: Path, name: str, blob: bytes) -> None:
    """Append a key to the app-owned file: a new file with mode 600 takes the old one's place.

    Raises:
        OSError: It cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        before = file.read_bytes()
    except FileNotFoundError:
        before = b""
    if before and not before.endswith(b"\n"):
        before += b"\n"
    entry = f"{name} {ssh_wire.key_type(blob)} {base64.b64encode(blob).decode()}\n".encode()
    if entry in before.splitlines(keepends=True):
        return
    descriptor, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # mode 600
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(before + entry)
            handle.flush()
            os.fsync(handle.fileno())
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
