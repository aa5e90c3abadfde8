"""What the terminal shows, as plain text: for tests that look at screens."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len
from textual.app import App


def lines(app: App[Any]) -> list[str]:
    """The lines of the screen in front, without the blanks at their ends."""
    width, height = app.size
    shown = []
    for strip in app.screen._compositor.render_strips():
        text = "".join(segment.text for segment in strip)
        assert cell_len(text) == width, f"a line is {cell_len(text)} cells wide, not {width}: {text!r}"
        shown.append(text.rstrip())
    assert len(shown) == height
    return shown


def text(app: App[Any]) -> str:
    """All of them."""
    return "\n".join(lines(app))
