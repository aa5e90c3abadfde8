"""What is said about a host key that is not accepted, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from console.remote.errors import FailureKind, RemoteError
from console.remote.host_keys.known_hosts import Line
from console.remote.host_keys.known_hosts_store import lookup_name
from console.remote.ssh import ssh_wire
from console.remote.target import Target

_NOTES = 3


def unknown(target: Target, blob: bytes, doubt: str | None, notes: Sequence[str]) -> RemoteError:
    """Nobody knows the key.

    Args:
        target: Whose it is.
        blob: The key.
        doubt: Why its certificate did not convince, if it had one.
        notes: Files and lines that could not be read, and might have known it.
    """
    because = f" ({doubt})" if doubt else ""
    unread = f" Not readable: {'; '.join(notes[:_NOTES])}." if notes else ""
    return RemoteError(
        FailureKind.HOST_KEY_UNKNOWN,
        f"The host key of {target.name} ({target.address}) is not known{because}: {_shown(blob)}.{unread}",
        hint="Compare it with what the droplet's own console shows for"
        " `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`, then connect from a terminal and accept it.",
    )


def changed(target: Target, blob: bytes, lines: Sequence[Line]) -> RemoteError:
    """Another key is known: a hard stop.

    Args:
        target: Whose it is.
        blob: The key shown now.
        lines: Those that say otherwise; none where it was accepted for this session alone.
    """
    if not lines:
        return RemoteError(
            FailureKind.HOST_KEY_CHANGED,
            f"{target.name} shows another host key than the one accepted earlier in this session: {_shown(blob)}.",
            hint="Somebody may be listening in. Do not log in before you know why; then restart this program.",
        )
    known = "; ".join(f"{line.where} has {ssh_wire.fingerprint(line.blob)}" for line in lines)
    removals = dict.fromkeys(_removal(line, lookup_name(target)) for line in lines)
    return RemoteError(
        FailureKind.HOST_KEY_CHANGED,
        f"The host key of {target.name} ({target.address}) has changed: it shows {_shown(blob)}, but {known}.",
        hint="Cloud addresses are reused: if this is another machine now, take the old key away with\n"
        + "\n".join(f"  {removal}" for removal in removals)
        + "\nIf it should be the same machine, somebody may be listening in: do not log in.",
    )


def _removal(line: Line, name: str) -> str:
    if line.removable():
        return f"ssh-keygen -f {shlex.quote(line.file)} -R {shlex.quote(name)}"
    return f"an editor, at {line.where}, where a pattern matches"


def revoked(target: Target, blob: bytes, where: str) -> RemoteError:
    """Somebody took the key out of use.

    Args:
        target: Whose it is.
        blob: The key, or its certificate's authority.
        where: File, or file and line.
    """
    return RemoteError(
        FailureKind.HOST_KEY_REVOKED,
        f"The host key of {target.name} ({target.address}), {ssh_wire.fingerprint(blob)}, is revoked in {where}.",
        hint="Whoever revoked it had a reason. The droplet needs a new host key.",
    )


def _shown(blob: bytes) -> str:
    return f"{ssh_wire.key_type(blob)} {ssh_wire.fingerprint(blob)}"
