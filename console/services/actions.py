"""One table of what a person can do: keys, footer, help, palette and read-only mode are made from it.

``mutates`` is a property of the action, not of a key or a front end: whoever runs an action asks ``allowed`` first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FLEET, OVERVIEW, EVENTS = "fleet", "overview", "events"
EVERYWHERE = frozenset({FLEET, OVERVIEW, EVENTS})
LISTS = frozenset({FLEET, EVENTS})
ONE_DROPLET = frozenset({FLEET, OVERVIEW})


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do.

    Attributes:
        id: What the screens implement as ``action_<id>``.
        title: As help and palette show it, a verb first.
        keys: In the notation of the screens ("ctrl+p", "question_mark"); the first is the one that is shown.
        group: The heading it stands under in the help.
        label: One word for the footer; None keeps it out of there.
        screens: Where it does something.
        mutates: It may change a droplet: never runs in read-only mode.
    """

    id: str
    title: str
    keys: tuple[str, ...]
    group: str
    label: str | None = None
    screens: frozenset[str] = EVERYWHERE
    mutates: bool = False

    @property
    def key(self) -> str:
        """The first key as a person reads it."""
        return shown_key(self.keys[0])


_SIGNS = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "comma": ",",
    "full_stop": ".",
    "plus": "+",
    "minus": "-",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "asterisk": "*",
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
}

ACTIONS = (
    Action("open", "Open the droplet under the cursor", ("enter",), "Go", "open", LISTS),
    Action("back", "Go back", ("escape",), "Go", "back", frozenset({OVERVIEW, EVENTS})),
    Action("fleet", "Show the fleet", ("1", "f"), "Go", "fleet"),
    Action("overview", "Show the droplet last opened", ("2", "o"), "Go", "droplet"),
    Action("events", "Show what happened", ("3", "e"), "Go", "events"),
    Action("jump", "Jump to a droplet or a model", ("colon",), "Go", "jump"),
    Action("next_droplet", "Next droplet", ("right_square_bracket",), "Go", None, frozenset({OVERVIEW})),
    Action("previous_droplet", "Previous droplet", ("left_square_bracket",), "Go", None, frozenset({OVERVIEW})),
    Action("next_server", "Next Triton server of this droplet", ("tab",), "Go", None, frozenset({OVERVIEW})),
    Action("filter", "Show only lines that match (!text: that do not)", ("slash",), "List", "filter",
           LISTS),
    Action("sort_next", "Sort by the next column", ("greater_than_sign",), "List", "sort", frozenset({FLEET})),
    Action("sort_previous", "Sort by the column before", ("less_than_sign",), "List", None, frozenset({FLEET})),
    Action("sort_reverse", "Turn the order round", ("R",), "List", None, frozenset({FLEET})),
    Action("mark", "Mark the line, or take its mark away", ("space",), "List", "mark", frozenset({FLEET})),
    Action("group", "Group by the settings' groups", ("g",), "List", None, frozenset({FLEET})),
    Action("pause", "Hold the picture still, or let it run again", ("p",), "View", "pause"),
    Action("zoom_in", "Show less time in the graphs", ("plus", "equals_sign"), "View", None, frozenset({OVERVIEW})),
    Action("zoom_out", "Show more time in the graphs", ("minus",), "View", "zoom", frozenset({OVERVIEW})),
    Action("maximise", "Make the chosen panel large, or small again", ("m",), "View", "large",
           frozenset({OVERVIEW})),
    Action("next_panel", "Next panel", ("right", "l"), "View", None, frozenset({OVERVIEW})),
    Action("previous_panel", "Previous panel", ("left", "h"), "View", None, frozenset({OVERVIEW})),
    Action("earlier", "Read the graphs at an earlier moment", ("comma", "shift+left"), "View", None,
           frozenset({OVERVIEW})),
    Action("later", "Read the graphs at a later moment", ("full_stop", "shift+right"), "View", None,
           frozenset({OVERVIEW})),
    Action("theme", "Change the colours", ("t",), "View"),
    Action("copy", "Copy what the cursor is on", ("c", "y"), "Take along", "copy"),
    Action("export", "Write what is shown to files, CSV and JSON", ("x",), "Take along", "export"),
    Action("retry", "Connect now: the marked droplets, or this one", ("r",), "Droplet", "retry",
           ONE_DROPLET),
    Action("shell", "Open a shell on the droplet with ssh", ("s",), "Droplet", "shell", ONE_DROPLET),
    Action("forward", "Bring Triton's ports here, and show how to call it", ("w",), "Droplet",
           "forward", frozenset({OVERVIEW})),
    Action("palette", "Find any of these", ("ctrl+p",), "Program"),
    Action("help", "Show the keys", ("question_mark", "f1"), "Program", "help"),
    Action("quit", "Quit", ("q", "ctrl+q", "ctrl+c"), "Program", "quit"),
)  # fmt: skip
"""In the order in which footer and help show them."""


def on_screen(screen: str) -> Iterator[Action]:
    """The actions that do something on a screen, in the table's order."""
    return (action for action in ACTIONS if screen in action.screens)


def allowed(action: Action, *, read_only: bool) -> bool:
    """False where read-only mode forbids it."""
    return not (action.mutates and read_only)


def shown_key(key: str) -> str:
    """A key as a person reads it: "?" for "question_mark", "^p" for "ctrl+p"."""
    return f"^{key[5:]}" if key.startswith("ctrl+") else _SIGNS.get(key, key)
