"""The state of a droplet's line in a few words, and how it is to be seen."""

from __future__ import annotations

from console.domain.words.figures import duration, milliseconds
from console.remote.errors import FailureKind
from console.services.link import LinkState, Phase

_ROLES = {
    Phase.CONNECTING: "accent",
    Phase.LIVE: "good",
    Phase.STALLED: "warn",
    Phase.WAITING: "warn",
    Phase.FAILED: "bad",
    Phase.CLOSED: "dim",
}


def role(link: LinkState | None) -> str:
    """The theme's role for a state of the line."""
    return "dim" if link is None else _ROLES[link.phase]


def short(link: LinkState | None) -> str:
    """For a column: "live", "retrying", "host key unknown". Nothing that counts, as a hundred lines would do so."""
    if link is None:
        return "not yet tried"
    if link.phase is Phase.WAITING:
        return "retrying"
    if link.phase is Phase.STALLED:
        return "silent"
    if link.phase is Phase.FAILED and link.error is not None:
        return _KINDS.get(link.error.kind, str(link.error.kind.value))
    return str(link.phase.value)


def full(link: LinkState | None, now: float, lost_at: float | None) -> str:
    """For the header and under a list: the state with its reason, and for how long there has been nothing."""
    if link is None:
        return "not yet tried"
    words = link.words
    if link.phase is Phase.WAITING and link.retry_at is not None:
        words = f"{link.error}; next try in {max(link.retry_at - now, 0):.0f} s" if link.error else words
    if lost_at is not None and link.phase is not Phase.LIVE:
        words += f"; figures are {duration(max(now - lost_at, 0))} old"
    return words


def round_trip(link: LinkState | None) -> str:
    """How far away it is ("23 ms away"), or nothing where it was not measured."""
    return f"{milliseconds(link.rtt_s * 1000)} away" if link is not None and link.rtt_s is not None else ""


_KINDS = {FailureKind.NAME_NOT_RESOLVED: "no such name", FailureKind.UNREACHABLE: "unreachable"}
