"""The state of the line to a droplet, in words, and what a watched droplet tells its watchers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the screens know the phases before they load what a sample is
    from console.domain.telemetry.sample import Sample
    from console.remote.errors import RemoteError


class Phase(str, Enum):
    """Where the line to a droplet stands. The value is what ``--json`` prints."""

    CONNECTING = "connecting"
    LIVE = "live"
    STALLED = "stalled"
    """Connected, and nothing has come for longer than a tick should take."""
    WAITING = "waiting"
    """Not connected; the next try is at ``LinkState.retry_at``."""
    FAILED = "failed"
    """Not connected, and no try will be made without a person."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class LinkState:
    """The line to one droplet.

    Attributes:
        phase: Where it stands.
        words: One sentence fragment for people: "live", "no data for 3 s", "refused; trying again in 4 s".
        since: When this phase began, in Unix seconds of this side's clock.
        error: What went wrong, in the phases that follow a failure.
        retry_at: When the next try is due, in Unix seconds; None where none is.
        rtt_s: Seconds for a round trip as last measured, or None.
    """

    phase: Phase
    words: str
    since: float
    error: RemoteError | None = None
    retry_at: float | None = None
    rtt_s: float | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One thing a watcher is told: a sample, or a new state of the line."""

    droplet: str
    sample: Sample | None = None
    link: LinkState | None = None
