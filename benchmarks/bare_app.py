"""The least that Textual can show: what a first paint is measured against."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static

WORDS = "first paint"


class BareApp(App[None]):
    """One line of text."""

    def compose(self) -> ComposeResult:
        """See Textual."""
        yield Static(WORDS)


if __name__ == "__main__":
    BareApp().run()
