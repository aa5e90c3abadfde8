"""The keys that do something here, from the table of actions."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.strip import Strip

from console.services.actions import Action, allowed, on_screen, shown_key
from console.tui.widgets.lines import Lines
from console.tui.widgets.strip import cell, line

LISTS = (
    ("↑ ↓  j k", "Move the cursor by a line"),
    ("pgup pgdn", "Move it by a page"),
    ("home end", "Move it to the first or last line"),
)
KEYS_WIDTH = 18


class Keys(Lines, can_focus=True):
    """The list, scrolled line by line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_by(-1)", show=False),
        Binding("down,j", "scroll_by(1)", show=False),
        Binding("pageup", "scroll_by(-10)", show=False),
        Binding("pagedown,space", "scroll_by(10)", show=False),
    ]

    def __init__(self, mode: str, read_only: bool) -> None:
        super().__init__()
        self._mode = mode
        self._read_only = read_only
        self._top = 0

    def draw(self, width: int, height: int) -> list[Strip]:
        """See ``Lines``: one column of groups, two where there is room."""
        groups = self._groups()
        columns = 2 if width >= 150 else 1
        room = width // columns
        placed = self._placed(groups, room, columns)
        self._top = max(min(self._top, len(placed) - height), 0)
        return placed[self._top : self._top + height]

    def action_scroll_by(self, by: int) -> None:
        """The keys."""
        self._top += by
        self.redraw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel."""
        self.action_scroll_by(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel."""
        self.action_scroll_by(-3)

    def _groups(self) -> list[list[Strip]]:
        named: dict[str, list[Action]] = {}
        for action in on_screen(self._mode):
            named.setdefault(action.group, []).append(action)
        groups = []
        for name, actions in named.items():
            lines = [Strip([Segment(f"  {name}", self.style("heading"))])]
            lines += [self._action(action) for action in actions]
            if name == "List":
                lines += [self._entry(keys, words, "text") for keys, words in LISTS]
            groups.append([*lines, Strip([])])
        return groups

    def _action(self, action: Action) -> Strip:
        keys = "  ".join(shown_key(key) for key in action.keys)
        if allowed(action, read_only=self._read_only):
            return self._entry(keys, action.title, "text")
        return self._entry(keys, f"{action.title} (not in read-only mode)", "dim")

    def _entry(self, keys: str, words: str, role: str) -> Strip:
        if not self.symbols.unicode:
            keys = keys.replace("↑ ↓", "up down")
        return Strip([cell(f"  {keys}", KEYS_WIDTH, self.style("accent")), Segment(words, self.style(role))])

    @staticmethod
    def _placed(groups: list[list[Strip]], room: int, columns: int) -> list[Strip]:
        if columns == 1:
            return [line(strip, room) for group in groups for strip in group]
        half = sum(len(group) for group in groups) / 2
        left: list[Strip] = []
        right: list[Strip] = []
        for group in groups:
            (left if len(left) + len(group) / 2 <= half else right).extend(group)
        blank = Strip([])
        rows = max(len(left), len(right))
        pairs = zip([*left, *[blank] * (rows - len(left))], [*right, *[blank] * (rows - len(right))], strict=True)
        return [line([*line(one, room), *line(other, room)], 2 * room) for one, other in pairs]


class HelpScreen(ModalScreen[None]):
    """In front of the screen whose keys it shows; any of ?, q, escape closes it."""

    DEFAULT_CSS = "HelpScreen { background: $background; padding: 1 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter", "close", show=False),
        Binding("ctrl+c,ctrl+q", "app.quit", show=False, priority=True),
    ]

    def __init__(self, mode: str, read_only: bool) -> None:
        super().__init__()
        self._keys = Keys(mode, read_only)
        self._left = False

    def compose(self) -> ComposeResult:
        """See Textual."""
        yield self._keys

    def on_mount(self) -> None:
        """Let the arrows scroll."""
        self._keys.focus()

    def action_close(self) -> None:
        """Back to the screen."""
        if self.is_current and not self._left:  # a key that was typed ahead comes twice
            self._left = True
            self.dismiss(None)
