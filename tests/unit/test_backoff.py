from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.remote.errors import NEEDS_A_PERSON, FailureKind, RemoteError
from console.remote.login import backoff


def delays(watched: bool, count: int) -> list[float]:
    found = [backoff.delay(n, watched=watched) for n in range(count)]
    return [value for value in found if value is not None]


def test_watched_it_is_tried_after_1_2_4_and_then_every_8_seconds() -> None:
    assert delays(watched=True, count=6) == [1, 2, 4, 8, 8, 8]


def test_unwatched_it_backs_off_to_a_minute() -> None:
    assert delays(watched=False, count=9) == [1, 2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.parametrize("kind", sorted(NEEDS_A_PERSON))
@pytest.mark.parametrize("watched", [True, False])
def test_what_needs_a_person_is_never_tried_by_itself(kind: FailureKind, watched: bool) -> None:
    assert backoff.delay(0, watched=watched, error=RemoteError(kind, "no")) is None


def test_nor_is_a_jump_host_that_needs_a_person() -> None:
    error = RemoteError(FailureKind.JUMP_HOST_FAILED, "no")
    error.__cause__ = RemoteError(FailureKind.NO_KEY_ACCEPTED, "no key")
    assert backoff.delay(0, watched=True, error=error) is None


@given(
    failures=st.integers(0, 10_000),
    watched=st.booleans(),
    random=st.floats(0, 1, exclude_max=True),
    retry_after=st.none() | st.floats(0, 1000),
)
def test_jitter_stays_small_and_retry_after_is_never_cut_short(
    failures: int, watched: bool, random: float, retry_after: float | None
) -> None:
    error = RemoteError(FailureKind.LIMITED, "limited", retry_after=retry_after)
    plain = backoff.delay(failures, watched=watched, error=RemoteError(FailureKind.LIMITED, "limited"))
    delay = backoff.delay(failures, watched=watched, error=error, random=random)
    assert plain is not None
    assert delay is not None
    assert delay >= (retry_after or 0.0)
    assert delay >= 0.8 * plain
    assert delay <= max(1.2 * plain, 1.3 * (retry_after or 0.0))


def test_the_time_that_a_try_took_is_not_waited_for_again() -> None:
    assert [backoff.delay(n, watched=True, spent=15.0) for n in range(5)] == [1] * 5
    assert backoff.delay(4, watched=True, spent=3.0) == 5
    limited = RemoteError(FailureKind.LIMITED, "no", retry_after=20.0)
    assert (backoff.delay(4, watched=True, spent=15.0, error=limited) or 0) >= 20


@pytest.mark.parametrize("kind", sorted(backoff.TURNED_AWAY))
def test_who_is_turned_away_for_long_becomes_rarer(kind: FailureKind) -> None:
    error = RemoteError(kind, "no")
    delays = [backoff.delay(n, watched=True, error=error) or 0 for n in range(18)]
    assert delays == [1, 2, 4, 8, 8, 8, 16, 16, *[30] * 8, 60, 60]
    assert sum(delays[:6]) >= 30  # a droplet that boots is not made to wait


@pytest.mark.parametrize("consoles", [1, 2, 3])
def test_a_ban_of_ufw_comes_to_its_end(consoles: int) -> None:
    """``limit`` is ``recent --set`` and then ``recent --update --seconds 30 --hitcount 6``."""
    error = RemoteError(FailureKind.REFUSED, "no")
    seen = [0.0] * 12
    tries = sorted(
        started + sum(backoff.delay(n, watched=True, error=error) or 0 for n in range(count))
        for started in (0.0, 1.3, 5.1)[:consoles]
        for count in range(30)
    )
    for now in tries:
        seen.append(now)
        if sum(1 for when in seen if now - when < 30) < 6:
            assert now < 10 * 60
            return
        seen.append(now)
    pytest.fail("banned for ever")


def test_other_failures_are_tried_every_8_seconds_for_ever() -> None:
    error = RemoteError(FailureKind.TIMED_OUT, "no")
    assert [backoff.delay(n, watched=True, error=error) for n in (6, 10, 1000)] == [8, 8, 8]
