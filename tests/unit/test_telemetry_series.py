from __future__ import annotations

import itertools
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.telemetry.series import Series, Summary


def filled(*values: float | None, capacity: int = 100) -> Series:
    """One value a second, from second 1 on."""
    series = Series(capacity)
    for second, value in enumerate(values, 1):
        series.add(float(second), 1.0, value)
    return series


def test_it_keeps_the_last_values_in_order_and_no_more() -> None:
    series = filled(*range(10), capacity=4)
    assert len(series) == 4
    assert [value for _, _, value in series.points()] == [6, 7, 8, 9]
    assert series.last() == 9


def test_what_is_no_value_is_a_gap() -> None:
    series = filled(1.0, None, nan, inf, 2.0)
    assert [value for _, _, value in series.points()] == [1.0, None, None, None, 2.0]
    assert series.summary() == Summary(1.0, 2.0, 1.5)
    assert filled(1.0, None).last() is None
    assert Series(3).last() is None
    assert filled(None).summary() is None


def test_a_mean_weighs_by_time() -> None:
    series = Series(10)
    series.add(1.0, 1.0, 10.0)
    series.add(4.0, 3.0, 2.0)
    assert series.summary() == Summary(2.0, 10.0, 4.0)
    assert series.summary(since=1.0) == Summary(2.0, 2.0, 2.0)


def test_a_clock_that_goes_back_adds_nothing() -> None:
    series = filled(1.0, 2.0)
    assert not series.add(2.0, 1.0, 9.0)
    assert not series.add(1.5, 1.0, 9.0)
    assert not series.add(nan, 1.0, 9.0)
    assert series.add(2.5, 1.0, 3.0)
    assert [start for start, _, _ in series.points()] == [0.0, 1.0, 2.0]


def test_a_gap_in_time_is_a_gap_in_the_graph() -> None:
    series = filled(5.0, 5.0)
    series.add(10.0, 1.0, 5.0)
    columns = series.columns(0.0, 10.0, 10)
    assert [column is not None for column in columns] == [True, True, *[False] * 7, True]


def test_a_peak_is_kept_however_small_the_graph() -> None:
    series = filled(*[1.0] * 500, 99.0, *[1.0] * 499, capacity=1000)
    columns = series.columns(0.0, 1000.0, 7)
    assert max(column.high for column in columns if column) == 99.0
    assert min(column.low for column in columns if column) == 1.0


def test_a_large_graph_is_not_torn() -> None:
    columns = filled(1.0, 2.0).columns(0.0, 2.0, 10)
    assert [column.mean for column in columns if column] == [1.0] * 5 + [2.0] * 5


@pytest.mark.parametrize(("begin", "end", "width"), [(0, 10, 0), (5, 5, 3), (9, 1, 3), (0, 10, -1)])
def test_a_graph_of_nothing_is_empty(begin: float, end: float, width: int) -> None:
    assert filled(1.0).columns(begin, end, width) == []


def test_a_series_of_no_size_is_refused() -> None:
    with pytest.raises(ValueError, match="one value at least"):
        Series(0)


VALUES = st.lists(
    st.tuples(st.floats(0.001, 100), st.floats(0, 120), st.none() | st.floats(-1e9, 1e9)), min_size=1, max_size=60
)


@given(VALUES, st.integers(1, 40), st.integers(1, 50))
def test_columns_hold_every_value_they_cover_and_invent_none(
    steps: list[tuple[float, float, float | None]], width: int, capacity: int
) -> None:
    series = Series(capacity)
    now = 0.0
    for ahead, seconds, value in steps:
        now += ahead
        series.add(now, seconds, value)
    points = list(series.points())
    assert len(points) == min(len(steps), capacity)
    assert all(start <= end for start, end, _ in points)
    assert all(first[1] <= second[0] + 1e-9 for first, second in itertools.pairwise(points))
    columns = series.columns(points[0][0] - 1, now + 1, width)
    assert len(columns) == width
    values = {value for _, _, value in points if value is not None}
    shown = [column for column in columns if column is not None]
    assert {column.high for column in shown} | {column.low for column in shown} <= values
    if values:
        assert max(column.high for column in shown) == max(values)
        assert min(column.low for column in shown) == min(values)
    assert all(column.low <= column.mean <= column.high for column in shown)
