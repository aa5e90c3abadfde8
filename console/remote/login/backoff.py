"""When to try a lost droplet again: pure arithmetic."""

from __future__ import annotations

from console.remote.errors import FailureKind, RemoteError

WATCHED_CEILING = 8.0
UNWATCHED_CEILING = 60.0
TURNED_AWAY = frozenset({FailureKind.REFUSED, FailureKind.LIMITED})
"""What a ban looks like from outside."""
STUBBORN = {6: 16.0, 8: 30.0, 16: 60.0}
"""From so many failures in a row on, who is turned away tries only every so many seconds. UFW's ``limit`` bans
while it counts six in 30 s from an address, and a try that it rejects counts twice (``recent --set``, then
``--update``): more than two tries in 30 s, by all consoles behind one address, keep a ban alive for ever."""
JITTER = 0.25
"""A delay is spread over this share of it, so that a fleet does not come back in one instant."""


def delay(
    failures: int, *, watched: bool, error: RemoteError | None = None, random: float = 0.5, spent: float = 0.0
) -> float | None:
    """Seconds until the next login by itself.

    Args:
        failures: Failed logins in a row since the droplet was last live; 0 right after the loss.
        watched: Somebody is looking: 1, 2, 4, then every 8 s, and more seldom where it goes on being turned
            away. Otherwise on up to 60 s.
        error: What failed last.
        spent: Seconds that the failed try took: who did not answer all that time is not to be waited for again.
        random: From 0 to below 1. Jitter shortens or lengthens by at most ``JITTER`` / 2.

    Returns:
        The delay, never less than ``error.retry_after``; None where only a person can help.
    """
    if error is not None and error.needs_a_person:
        return None
    ceiling = WATCHED_CEILING if watched else UNWATCHED_CEILING
    if error is not None and error.kind in TURNED_AWAY:
        ceiling = max([ceiling, *(seconds for many, seconds in STUBBORN.items() if failures >= many)])
    seconds = min(ceiling, 2.0 ** min(max(failures, 0), 10))
    seconds = max(seconds - spent, 1.0) * (1.0 + JITTER * (random - 0.5))
    if error is not None and error.retry_after is not None:
        # Later, never earlier: whoever bans renews the ban for those who come early.
        seconds = max(seconds, error.retry_after * (1.0 + JITTER * random))
    return seconds
