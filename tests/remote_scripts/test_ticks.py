from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remote_scripts.ticks import Ticks


def test_a_late_tick_does_not_make_the_next_one_late() -> None:
    ticks = Ticks(100.0, 1.0)
    assert ticks.due == 100.0
    assert ticks.pass_on(100.4) == 0
    assert ticks.due == 101.0
    assert ticks.pass_on(101.9) == 0
    assert ticks.due == 102.0


def test_moments_that_went_by_are_counted() -> None:
    ticks = Ticks(0.0, 1.0)
    assert ticks.pass_on(0.1) == 0
    assert ticks.pass_on(4.5) == 2
    assert ticks.due == 4.0
    assert ticks.pass_on(4.6) == 0
    assert ticks.due == 5.0


def test_a_clock_that_stands_still_still_gives_the_next_moment() -> None:
    ticks = Ticks(0.0, 1.0)
    assert [ticks.pass_on(0.0), ticks.pass_on(0.0)] == [0, 0]
    assert ticks.due == 2.0


@given(st.floats(0.1, 10), st.lists(st.floats(0, 20), max_size=30))
def test_every_moment_is_either_kept_or_missed(interval: float, steps: list[float]) -> None:
    ticks = Ticks(0.0, interval)
    now, missed = 0.0, 0
    for kept, step in enumerate(steps, 1):
        now = max(now, ticks.due) + step
        missed += ticks.pass_on(now)
        assert ticks.due == (kept + missed) * interval
        assert ticks.due > now - interval - 1e-6
