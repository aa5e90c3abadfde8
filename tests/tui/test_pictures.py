"""The README's pictures are drawn from what a terminal shows, and load nothing."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from pictures.svg import HIGH, picture

GREY = TerminalTheme((18, 22, 28), (200, 200, 200), [(9, 9, 9)] * 8, [(250, 250, 250)] * 8)
SVG = "{http://www.w3.org/2000/svg}"


def drawn(text: Text, size: tuple[int, int] = (20, 3)) -> ElementTree.Element:
    return ElementTree.fromstring(picture(text, size, "a title", GREY))


def texts(root: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text")][1:]


def test_text_stands_in_its_cell_with_its_colour() -> None:
    root = drawn(Text.assemble("   ", ("12", "#ff0000"), "  x"))
    first, second = list(root.iter(f"{SVG}text"))[1:]
    assert (first.text, first.get("fill")) == ("12", "#ff0000")
    assert second.text == "x"
    assert float(second.get("x", "")) - float(first.get("x", "")) == pytest.approx(4 * 8.4)


def test_bars_are_shapes_of_their_height() -> None:
    root = drawn(Text("▄█", style="#00ff00"))
    bars = [one for one in root.iter(f"{SVG}rect") if one.get("fill") == "#00ff00"]
    assert [float(one.get("height", "")) for one in bars] == [HIGH / 2, HIGH]
    assert texts(root) == []


def test_reverse_swaps_and_the_ground_is_the_terminals() -> None:
    root = drawn(Text("on", style="reverse"))
    fills = [one.get("fill") for one in root.iter(f"{SVG}rect")]
    assert fills == ["#12161c", "#c8c8c8"]
    assert next(one.get("fill") for one in list(root.iter(f"{SVG}text"))[1:]) == "#12161c"


def test_hostile_text_stays_text_and_nothing_is_loaded() -> None:
    svg = picture(Text("<script>&amp;"), (20, 1), "</title><script>", GREY)
    assert texts(ElementTree.fromstring(svg)) == ["<script>&amp;"]
    assert "<script" not in svg
    assert set(re.findall(r"https?://[^\"' ]*", svg)) == {"http://www.w3.org/2000/svg"}
