from __future__ import annotations

import pytest

from console.tui.widgets.rows import Cell, Column, Row, arrange, fitting, matcher


def row(key: str, value: float | str | None, group: str = "") -> Row:
    return Row(key, {"name": Cell(key, order=key), "value": Cell(str(value), order=value)}, group)


ROWS = [row("b", 2.0, "y"), row("a", None, "x"), row("c", 10.0), row("d", 1.0, "x")]


def keys(rows: list[Row]) -> list[str]:
    return [one.key for one in rows]


def test_rows_without_a_figure_stay_last_whatever_the_order() -> None:
    assert keys(arrange(ROWS, sort="value")) == ["d", "b", "c", "a"]
    assert keys(arrange(ROWS, sort="value", reverse=True)) == ["c", "b", "d", "a"]


def test_their_own_order_without_sorting() -> None:
    assert keys(arrange(ROWS)) == ["b", "a", "c", "d"]


def test_groups_stand_together_and_who_has_none_comes_last() -> None:
    assert keys(arrange(ROWS, sort="name", grouped=True)) == ["a", "d", "b", "c"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("", ["gpu-prod-1", "gpu-[x]", "lab"]),
        ("PROD", ["gpu-prod-1"]),
        ("gpu-.*1$", ["gpu-prod-1"]),
        ("!gpu", ["lab"]),
        ("!", ["gpu-prod-1", "gpu-[x]", "lab"]),
        ("[x", ["gpu-[x]"]),
        ("!*", ["gpu-prod-1", "gpu-[x]", "lab"]),
    ],
)
def test_filter_takes_patterns_and_what_is_none_as_it_stands(wanted: str, found: list[str]) -> None:
    matches = matcher(wanted)
    assert [name for name in ("gpu-prod-1", "gpu-[x]", "lab") if matches(name)] == found


COLUMNS = (
    Column("name", "NAME", 10, grows=True, most=20),
    Column("a", "A", 10, priority=1),
    Column("b", "B", 10, priority=2),
)


@pytest.mark.parametrize(
    ("width", "placed"),
    [
        (100, [("name", 20), ("a", 10), ("b", 10)]),
        (36, [("name", 12), ("a", 10), ("b", 10)]),
        (33, [("name", 20), ("a", 10)]),
        (21, [("name", 20)]),
        (5, [("name", 10)]),
    ],
)
def test_columns_go_by_priority_and_one_takes_what_is_left(width: int, placed: list[tuple[str, int]]) -> None:
    assert [(column.key, room) for column, room in fitting(COLUMNS, width, 2)] == placed
