"""Graphs, histograms and gauges as cells."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment

from console.domain.telemetry.series import Series, Summary
from console.tui import theme
from console.tui.widgets.gauge import gauge, stacked
from console.tui.widgets.graph import Column, Threshold, area, axis, scale
from console.tui.widgets.histogram import bars, histogram
from console.tui.widgets.timeline import Columns, Span, span

DARK = theme.look("dark")
PLAIN = theme.look("ansi", theme.ASCII)


def text(lines: list[list[Segment]]) -> list[str]:
    return ["".join(piece.text for piece in line) for line in lines]


def test_columns_are_filled_to_the_eighth_of_a_cell() -> None:
    columns = [Column(value, value) for value in (0, 1, 4, 8, 12, 16)]
    assert text(area(columns, 16, 2, DARK)) == ["    ▄█", "▁▁▄███"]


def test_a_gap_is_not_a_zero() -> None:
    assert text(area([None, Column(0, 0), None], 10, 2, DARK)) == ["   ", "·▁·"]
    styles = [piece.style for piece in area([Column(0, 0), Column(5, 5)], 10, 1, DARK)[0]]
    assert styles[0] != styles[1]


def test_what_reached_above_the_mean_is_drawn_in_another_colour() -> None:
    low, high = area([Column(8, 16)], 16, 2, DARK)
    assert low[0].text == high[0].text == "█"
    assert low[0].style != high[0].style
    (both,) = area([Column(4, 8)], 8, 1, DARK)[0]
    assert both.text == "▄"
    assert both.style is not None
    assert both.style.bgcolor is not None


def test_the_smallest_value_is_still_seen() -> None:
    assert text(area([Column(0.001, 0.001)], 100, 1, DARK)) == ["▁"]
    assert text(area([Column(1e9, 1e9)], 100, 2, DARK)) == ["█", "█"]


def test_a_threshold_is_a_line_and_what_rises_above_it_has_its_colour() -> None:
    lines = area([None, Column(90, 90), Column(10, 10)], 100, 10, DARK, threshold=Threshold(80, "warn"))
    assert text(lines)[1] == " █─"
    assert lines[5][1].style != lines[9][2].style


def test_ascii_has_no_other_signs() -> None:
    columns = [None, *(Column(value, value + 3) for value in range(10))]
    drawn = text(area(columns, 12, 3, PLAIN, threshold=Threshold(5)))
    foot = text([axis(span(1000.0, 60, 40), 1000.0, PLAIN, [(990.0, "bad")])])
    assert all(line.isascii() for line in [*drawn, *foot])


@pytest.mark.parametrize(
    ("largest", "before", "top"),
    [(0, 0, 1), (0.3, 0, 1), (7, 0, 8), (12, 0, 15), (101, 0, 150), (100, 0, 100), (999, 0, 1000), (50, 80, 80),
     (30, 80, 30), (81, 80, 100), (1e6, 0, 1e6)],
)  # fmt: skip
def test_scales_are_round_and_do_not_jump_about(largest: float, before: float, top: float) -> None:
    assert scale(largest, before) == top


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_a_scale_holds_what_it_must(largest: float, before: float) -> None:
    assert scale(largest, before) >= largest * (1 - 1e-6)


def test_columns_stay_where_they_are_as_time_goes_on() -> None:
    first, later = span(1000.0, 300, 60), span(1004.9, 300, 60)
    assert first == later == Span(1000.0 if first.end == 1000.0 else 1005.0, 5.0, 60) or first.end + 5 == later.end
    assert later.column(later.end - 0.1) == 59
    assert later.column(later.end) is None
    assert later.column(later.moment(7)) == 7


def test_remembered_columns_are_what_would_be_summed_up_afresh() -> None:
    chance = random.Random(5)
    series, remembering = Series(400), Columns()
    end = 1_796_000_000.0
    for _ in range(600):
        seconds = chance.choice([0.5, 1.0, 1.0, 1.0, 3.0, 40.0])
        end += seconds
        series.add(end, min(seconds, 3.0), chance.choice([None, chance.random() * 100]))
        shown = span(end, 120.0, 40)
        assert same(remembering.of(series, shown), series.columns(shown.begin, shown.end, 40))
    for seconds, width in ((60.0, 40), (60.0, 20), (120.0, 40)):
        shown = span(end, seconds, width)
        assert same(remembering.of(series, shown), series.columns(shown.begin, shown.end, width))


def same(one: list[Summary | None], other: list[Summary | None]) -> bool:
    """To the precision of a clock that counts since 1970."""

    def alike(left: Summary | None, right: Summary | None) -> bool:
        if left is None or right is None:
            return left is right
        pair = ((left.low, left.high, left.mean), (right.low, right.high, right.mean))
        return pair[0] == pytest.approx(pair[1], rel=1e-3)

    return all(alike(left, right) for left, right in zip(one, other, strict=True))


def test_the_time_axis_says_how_long_ago_and_marks_what_happened() -> None:
    shown = span(1000.0, 300, 60)
    pieces = axis(shown, 1000.0, DARK, [(995.0, "good"), (850.0, "bad"), (10.0, "bad")])
    line = text([pieces])[0]
    assert len(line) == 60
    assert line.count("◆") == 2
    assert "-2m" in line
    assert [piece.style for piece in pieces if "◆" in piece.text] == [DARK["bad"], DARK["good"]]


@given(st.floats(1, 100_000), st.integers(1, 250))
def test_the_time_axis_has_its_width_whatever_it_shows(seconds: float, width: int) -> None:
    shown = span(1_796_000_000.0, seconds, width)
    assert len(text([axis(shown, 1_796_000_000.0, DARK)])[0]) == width


def test_a_histogram_has_a_bar_for_each_size() -> None:
    drawn = text(histogram({1: 10, 4: 5, 8: 20, 16: 0}, 12, 4, DARK))
    assert drawn == ["        ███ ", "▄▄▄     ███ ", "███ ▆▆▆ ███ ", " 1   4   8  "]


def test_neighbours_share_a_bar_where_there_is_no_room() -> None:
    counts = dict.fromkeys(range(1, 65), 1)
    assert [(bar.label, bar.count) for bar in bars(counts, 8)] == [
        ("1", 1), ("2", 1), ("3-4", 2), ("5-8", 4), ("9-16", 8), ("17-32", 16), ("33-64", 32),
    ]  # fmt: skip
    assert [bar.label for bar in bars({1: 1, 6: 1}, 8)] == ["1", "6"]
    assert [bar.label for bar in bars({1: 1, 2: 1, 3: 1, 6: 1}, 3)] == ["1", "2-4", "5-6"]


@given(
    st.dictionaries(st.integers(1, 4096), st.integers(0, 10**9), max_size=80),
    st.integers(1, 60),
    st.integers(2, 20),
)
def test_a_histogram_keeps_its_size_and_loses_nothing(counts: dict[int, int], width: int, height: int) -> None:
    drawn = histogram(counts, width, height, DARK)
    assert len(drawn) == height
    assert all(sum(piece.cell_length for piece in line) == width for line in drawn)
    assert sum(bar.count for bar in bars(counts, 7)) == sum(counts.values())


@given(st.one_of(st.none(), st.floats(-1, 2)), st.integers(1, 60))
def test_a_gauge_keeps_its_width(share: float | None, width: int) -> None:
    for look in (DARK, PLAIN):
        assert sum(piece.cell_length for piece in gauge(share, width, look)) == width


def test_a_gauge_tells_nothing_from_unknown_and_full() -> None:
    assert text([gauge(None, 4, DARK)]) == ["····"]
    assert text([gauge(0.0, 4, DARK)]) == ["────"]
    assert text([gauge(0.001, 4, DARK)]) == ["▏───"]
    assert text([gauge(0.5, 4, DARK)]) == ["██──"]
    assert text([gauge(1.0, 4, DARK)]) == ["████"]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=4), st.integers(4, 60))
def test_parts_of_a_whole_fill_the_width(parts: list[float], width: int) -> None:
    style = DARK["graph"]
    assert sum(piece.cell_length for piece in stacked([(part, style) for part in parts], width, DARK)) == width
