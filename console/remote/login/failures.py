"""From what broke to a sentence: every way in which a login fails, told apart."""

from __future__ import annotations

import errno
import re
import socket

from console.domain.telemetry.text import printable
from console.remote.errors import FailureKind, RemoteError
from console.remote.ssh.paramiko_api import ChannelRefused, Handshake, NoBanner
from console.remote.target import Target

PENALTY_SECONDS = 15.0
"""sshd's PerSourcePenalties are in force from this on (``min:15``)."""
MAX_STARTUPS_SECONDS = 1.0
"""Places free up as others log in; OpenSSH drops at random, so trying again soon is right."""

_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN)
_BOOTING = re.compile(r"system is booting up|please wait while we get your droplet ready", re.IGNORECASE)


def who(target: Target) -> str:
    """The droplet, for messages: its name, with the address where that says more."""
    return target.address if target.name in target.address else f"{target.name} ({target.address})"


def name_not_resolved(target: Target, error: OSError) -> RemoteError:
    """The name has no address."""
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        message = f"The name {target.host} cannot be looked up now: the name server does not answer."
        hint = "Check this machine's own connection and name server."
    else:
        message = f"The name {target.host} is not known."
        hint = "Check the spelling, or HostName in ssh_config."
    if target.name != target.host:
        message = f"{target.name}: {message}"
    return RemoteError(FailureKind.NAME_NOT_RESOLVED, message, hint=hint)


def not_connected(target: Target, errors: list[tuple[str, OSError]]) -> RemoteError:
    """No address could be connected to.

    Args:
        target: Where to.
        errors: Each address tried, with what happened.
    """
    by_kind: dict[FailureKind, tuple[str, OSError]] = {}
    for address, error in errors:
        by_kind.setdefault(_kind(error), (address, error))
    for kind in (FailureKind.REFUSED, FailureKind.TIMED_OUT, FailureKind.UNREACHABLE, FailureKind.SETTINGS):
        if kind in by_kind:
            return _not_connected(target, kind, *by_kind[kind])
    address, error = errors[0]
    return RemoteError(FailureKind.UNREACHABLE, f"{who(target)}: {address}: {error.strerror or error}.")


def _kind(error: OSError) -> FailureKind:
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return FailureKind.REFUSED
    if isinstance(error, TimeoutError):
        return FailureKind.TIMED_OUT
    if error.errno in (errno.EADDRNOTAVAIL, errno.EINVAL):
        return FailureKind.SETTINGS
    return FailureKind.UNREACHABLE


def _not_connected(target: Target, kind: FailureKind, address: str, error: OSError) -> RemoteError:
    where = f"{address} port {target.port}"
    if kind is FailureKind.REFUSED:
        return refused(target, where)
    if kind is FailureKind.TIMED_OUT:
        return timed_out(target, where)
    if kind is FailureKind.SETTINGS:
        return RemoteError(
            kind,
            f"{who(target)}: {where} cannot be reached from BindAddress {target.bind_address}: {error.strerror}.",
            hint="Take BindAddress out of ssh_config, or give an address that this machine has.",
        )
    if error.errno in (errno.EPERM, errno.EACCES):
        return RemoteError(
            kind,
            f"{who(target)}: this machine does not allow the connection to {where}: {error.strerror}.",
            hint="Its own firewall forbids it.",
        )
    return RemoteError(
        kind,
        f"{who(target)}: there is no way to {where}: {(error.strerror or str(error)).lower()}.",
        hint="Check this machine's network, VPN and IPv6.",
    )


def refused(target: Target, where: str) -> RemoteError:
    """Nothing listens there, or a firewall says no."""
    return RemoteError(
        FailureKind.REFUSED,
        f"{who(target)}: {where} refuses the connection.",
        hint="The droplet is still booting, or its sshd is down or on another port, or UFW's limit (six connections"
        " in 30 s) turns this machine away for half a minute.",
    )


def timed_out(target: Target, where: str) -> RemoteError:
    """No answer at all."""
    return RemoteError(
        FailureKind.TIMED_OUT,
        f"{who(target)}: {where} does not answer.",
        hint="The droplet is off, a firewall drops the connection, or the address is wrong.",
    )


def no_banner(target: Target, error: NoBanner) -> RemoteError:
    """Connected, but no SSH server introduced itself."""
    said = printable(" ".join(line for line in error.lines if line), 200)
    if "Exceeded MaxStartups" in said:
        return RemoteError(
            FailureKind.LIMITED,
            f"{who(target)} has too many logins in progress (MaxStartups).",
            hint="Often scanners on the Internet fill its places. Try again soon; then limit who may connect.",
            retry_after=MAX_STARTUPS_SECONDS,
        )
    if "Not allowed at this time" in said:
        return RemoteError(
            FailureKind.LIMITED,
            f"{who(target)} punishes this machine's address for earlier connections (PerSourcePenalties):"
            " it is not allowed in at this time.",
            hint="It ends by itself, after 15 s to some minutes. Others behind the same address may be the cause.",
            retry_after=PENALTY_SECONDS,
        )
    if said:
        return RemoteError(
            FailureKind.PROTOCOL,
            f"{who(target)}: what answers on port {target.port} is no SSH server; it says: {said}",
            hint="Check the port.",
        )
    if error.closed:
        return RemoteError(
            FailureKind.LIMITED,
            f"{who(target)} accepts the connection and closes it without a word.",
            hint="Its sshd is still starting, has too many logins in progress (MaxStartups), or punishes this"
            " machine's address (PerSourcePenalties: 15 s to some minutes); or it is no SSH server at all.",
        )
    return RemoteError(
        FailureKind.TIMED_OUT,
        f"{who(target)} accepts the connection and then says nothing.",
        hint="The droplet is overloaded or hangs, or what listens on that port is no SSH server.",
    )


def no_key_exchange(target: Target, transport: Handshake, error: Exception) -> RemoteError:
    """The banner came, but no keys were agreed."""
    if isinstance(error, TimeoutError):
        return RemoteError(
            FailureKind.TIMED_OUT,
            f"{who(target)} did not finish the key exchange in time.",
            hint="The droplet is overloaded, or large packets do not get through (MTU).",
        )
    goodbye = transport.disconnected
    if isinstance(error, EOFError | OSError) or goodbye is not None:
        said = f": {printable(goodbye[1], 200)}" if goodbye else ""
        return RemoteError(FailureKind.LOST, f"{who(target)} ended the connection during the key exchange{said}.")
    text = printable(str(error), 200)
    hint = None
    if "Incompatible" in text:
        hint = (
            "Its sshd knows only algorithms that do not count as safe any more (SHA-1, DSA): upgrade OpenSSH there."
        )
    return RemoteError(
        FailureKind.PROTOCOL,
        f"{who(target)}, {printable(transport.remote_version or 'no version', 100)}: no key exchange: {text}.",
        hint=hint,
    )


def still_booting(target: Target, banners: list[str]) -> RemoteError | None:
    """A refusal that only means: not up yet (pam_nologin's words, shown before authentication fails)."""
    for banner in banners:
        if _BOOTING.search(banner):
            return RemoteError(
                FailureKind.STILL_BOOTING,
                f"{who(target)} is still booting: {printable(' '.join(banner.split()), 200)}",
                hint="It lets users in when its boot is over.",
            )
    return None


def jump_failed(target: Target, jump: Target, cause: RemoteError) -> RemoteError:
    """The host in between could not be logged in to. Raise it ``from cause``."""
    return RemoteError(
        FailureKind.JUMP_HOST_FAILED,
        f"{target.name} is behind the jump host {jump.name}, which cannot be used: {cause}",
        hint=cause.hint,
        retry_after=cause.retry_after,
    )


def jump_refused(target: Target, jump: Target, error: ChannelRefused) -> RemoteError:
    """The host in between did not connect us onwards."""
    said = printable(error.text, 200)
    where = f"port {target.port}, as seen from {jump.name},"
    if error.code == 2 and "refused" in said.lower():
        return refused(target, where)
    if error.code == 2 and "timed out" in said.lower():
        return timed_out(target, where)
    if error.code == 2 and re.search("no route|unreachable", said, re.IGNORECASE):
        return RemoteError(FailureKind.UNREACHABLE, f"{who(target)}: {jump.name} finds no way to it: {said}.")
    if error.code == 2:
        return RemoteError(
            FailureKind.JUMP_HOST_FAILED,
            f"The jump host {jump.name} cannot connect to {who(target)}: {said or 'it does not say why'}.",
            hint=f"The name {target.host} is looked up on the jump host.",
        )
    if error.code == 1:
        return RemoteError(
            FailureKind.JUMP_HOST_FAILED,
            f"The jump host {jump.name} does not allow connections onwards to {who(target)}: {said}.",
            hint="Its sshd_config needs AllowTcpForwarding, and PermitOpen for that address.",
        )
    return RemoteError(FailureKind.JUMP_HOST_FAILED, f"The jump host {jump.name} opens no channel: {said}.")
