"""Where panels stand: nothing overlaps, nothing is outside, what matters is there."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.tui.panels.arrange import FOUR, Place, arrange

WANTED = {"status": 2, "models": 4, "gpus": 3, "host": 5, "changes": 8}


@given(
    st.integers(20, 260),
    st.integers(1, 70),
    st.fixed_dictionaries(
        {
            "status": st.integers(2, 4),
            "models": st.integers(2, 2000),
            "gpus": st.integers(1, 70),
            "host": st.just(5),
            "changes": st.integers(1, 201),
        }
    ),
    st.sampled_from([None, "dram", "models", "changes"]),
)
def test_panels_neither_overlap_nor_stick_out(
    width: int, height: int, wanted: dict[str, int], large: str | None
) -> None:
    places = arrange(width, height, wanted, large)
    taken: set[tuple[int, int]] = set()
    for place in places:
        assert place.width > 0
        assert place.height > 0
        cells = set(
            itertools.product(range(place.x, place.x + place.width), range(place.y, place.y + place.height))
        )
        assert not cells & taken
        taken |= cells
    assert all(0 <= x < width and 0 <= y < height for x, y in taken)
    assert len({place.panel for place in places}) == len(places)


@pytest.mark.parametrize(("width", "height"), [(80, 21), (120, 37), (160, 45), (200, 47), (250, 57)])
def test_from_80_by_24_on_every_panel_is_there(width: int, height: int) -> None:
    places = {place.panel: place for place in arrange(width, height, WANTED)}
    assert set(places) == {"status", *FOUR, "latency", "models", "gpus", "host", "changes"}
    assert all(places[panel].height >= 5 for panel in FOUR)


def test_a_large_panel_has_all_the_room_below_the_status() -> None:
    assert arrange(120, 37, WANTED, "rps") == [Place("status", 0, 0, 120, 2), Place("rps", 0, 2, 120, 35)]


def test_on_a_tiny_terminal_the_status_stands() -> None:
    assert [place.panel for place in arrange(40, 2, WANTED)] == ["status"]
