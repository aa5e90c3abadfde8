from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from console.tui.theme import ASCII, UNICODE
from console.tui.widgets.strip import both_ends, cell, changed, fit, line, safe

RED, BLUE = Style.parse("red"), Style.parse("blue")
WORDS = some.text(alphabet=some.sampled_from("ab c漢字é…"), max_size=30)


def strip(text: str, style: Style = RED) -> Strip:
    return Strip([Segment(text, style)])


def test_only_what_differs_is_a_stretch() -> None:
    assert changed(strip("requests  100"), strip("requests  200")) == [(10, 11)]
    assert changed(strip("same"), strip("same")) == []


def test_distant_stretches_stand_alone_and_near_ones_are_one() -> None:
    assert changed(strip("a" + "-" * 40 + "b"), strip("x" + "-" * 40 + "y")) == [(0, 1), (41, 42)]
    assert changed(strip("a---b"), strip("x---y")) == [(0, 5)]


def test_a_change_of_style_alone_is_a_change() -> None:
    assert changed(strip("abc"), strip("abc", BLUE)) == [(0, 3)]


def test_a_wide_character_is_painted_whole() -> None:
    assert changed(strip("漢"), strip("字")) == [(0, 2)]
    assert changed(strip("ab"), strip("字")) == [(0, 2)]
    assert changed(strip("a漢b"), strip("a漢c")) == [(3, 4)]


@given(WORDS, WORDS)
def test_painting_the_stretches_makes_the_old_line_the_new_one(old: str, new: str) -> None:
    width = 32
    before, after = line([Segment(old)], width), line([Segment(new)], width)
    cells = list(_cells(before))
    wanted = list(_cells(after))
    for start, end in changed(before, after):
        cells[start:end] = wanted[start:end]
    assert cells == wanted


def _cells(one: Strip) -> list[str]:
    found: list[str] = []
    for segment in one:
        for char in segment.text:
            found += [char, "\0" + char][: cell_len(char)]
    return found


@given(WORDS, some.integers(1, 20), some.sampled_from("<>^"))
def test_a_cell_is_as_wide_as_it_is_told(text: str, width: int, align: str) -> None:
    assert cell(text, width, align=align).cell_length == width


def test_what_is_cut_says_so() -> None:
    assert fit("gpu-production", 6) == "gpu-p…"
    assert fit("漢字漢字", 4) == "漢 …"


def test_text_from_a_droplet_is_harmless() -> None:
    assert safe("\x1b[31mred\x07", UNICODE) == "\\x1b[31mred\\x07"
    assert safe("[bold]no markup[/]", UNICODE) == "[bold]no markup[/]"
    assert safe("62 °C…", ASCII).isascii()


def test_a_trend_is_still_one_without_unicode() -> None:
    assert safe(UNICODE.levels[1:], ASCII) == ASCII.levels[1:]


def test_where_both_ends_meet_the_left_gives_way() -> None:
    assert both_ends([Segment("a long name")], [Segment("12:00")], 10).text == "a lon12:00"
