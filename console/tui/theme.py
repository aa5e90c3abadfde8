"""Colours and signs: dark, light, the terminal's own 16 colours, and signs for terminals without UTF-8.

Widgets ask for a role ("bad"), never for a colour. Red means that something wants a hand, and nothing else is red.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rich.style import Style
from textual.theme import Theme

ROLES = (
    "text", "strong", "dim", "heading", "accent", "good", "warn", "bad", "cursor", "mark", "bar", "production",
    "badge", "graph", "graph2", "line",
)  # fmt: skip
"""``bar`` is header and footer; ``badge`` is DEMO and READ-ONLY; ``line`` is axes and rules."""


@dataclass(frozen=True, slots=True)
class Symbols:
    """Signs that not every terminal has.

    Attributes:
        dot: Before a state.
        mark: A marked line.
        rising: Sort order, smallest first; ``falling`` the other way.
        ellipsis: Where text was cut.
        levels: From empty to full, for bars of one cell.
        block: A full cell; ``half`` one half filled from the bottom.
        across: A rule; ``down`` an upright one.
        event: Marks a change on a time axis.
        gap: Where a graph has nothing.
        unicode: True where the terminal takes UTF-8.
    """

    dot: str = "●"
    mark: str = "▌"
    rising: str = "▲"
    falling: str = "▼"
    ellipsis: str = "…"
    levels: str = " ▁▂▃▄▅▆▇█"
    block: str = "█"
    half: str = "▄"
    across: str = "─"
    down: str = "│"
    event: str = "◆"
    gap: str = "·"
    unicode: bool = True


UNICODE = Symbols()
ASCII = Symbols(
    dot="*", mark=">", rising="^", falling="v", ellipsis="~", levels=" ..--==##", block="#", half="=", across="-",
    down="|", event="+", gap=".", unicode=False,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """What everything is drawn with.

    Attributes:
        name: The palette's: "dark", "light" or "ansi".
        styles: For each of ``ROLES``.
        symbols: Which signs.
    """

    name: str
    styles: Mapping[str, Style]
    symbols: Symbols = UNICODE

    def __getitem__(self, role: str) -> Style:
        return self.styles[role]

    @property
    def ground(self) -> Style:
        """What lies under everything: a palette is not readable on just any terminal's own."""
        return _ground(self.name)

    @property
    def flat_cursor(self) -> bool:
        """The cursor's line shows no other colours: reversed, they would be a patchwork."""
        return bool(self.styles["cursor"].reverse)

    def named(self, colour: str | None) -> Style:
        """The style of a droplet's own colour, as the settings name it; plain for None."""
        return self.styles["strong"] if colour is None else _own(self.name, colour)


_PALETTES: dict[str, dict[str, str]] = {
    "dark": {
        "text": "#c3c9d4", "strong": "bold #eef1f6", "dim": "#7d8696", "heading": "#8f9bb0", "accent": "#7fb2e5",
        "good": "#8fbf8a", "warn": "#d9b36c", "bad": "bold #ef7d7d", "cursor": "on #2a3442", "mark": "#d9b36c",
        "bar": "#a7b0c0 on #1b222c", "production": "bold #16191f on #d9b36c", "badge": "bold #16191f on #7fb2e5",
        "graph": "#6aa2d8", "graph2": "#b294bb", "line": "#3d4757",
    },
    "light": {
        "text": "#2f3640", "strong": "bold #0c1117", "dim": "#6b7480", "heading": "#566172", "accent": "#1f5fa8",
        "good": "#2f7a38", "warn": "#8a5a00", "bad": "bold #b3261e", "cursor": "on #d5e0ee", "mark": "#8a5a00",
        "bar": "#3c4654 on #e3e7ed", "production": "bold #ffffff on #8a5a00", "badge": "bold #ffffff on #1f5fa8",
        "graph": "#2f6fb5", "graph2": "#7c4f93", "line": "#b9c1cc",
    },
    "ansi": {
        "text": "default", "strong": "bold default", "dim": "bright_black", "heading": "bright_black",
        "accent": "cyan", "good": "green", "warn": "yellow", "bad": "bold red", "cursor": "reverse",
        "mark": "yellow", "bar": "default", "production": "bold black on yellow", "badge": "bold black on cyan",
        "graph": "blue", "graph2": "magenta", "line": "bright_black",
    },
}  # fmt: skip
_OWN = {
    "dark": {"red": "#e08f8f", "green": "#9ccf96", "yellow": "#e0c484", "blue": "#8ab6e8", "magenta": "#c9a3d6",
             "cyan": "#86cbd0", "white": "#eef1f6"},
    "light": {"red": "#9c3a33", "green": "#2f7a38", "yellow": "#8a5a00", "blue": "#1f5fa8", "magenta": "#7c4f93",
              "cyan": "#14707a", "white": "#0c1117"},
}  # fmt: skip
NAMES = tuple(_PALETTES)
_ANSI_GROUND = {"ansi-background": "ansi_default", "ansi-foreground": "ansi_default"}
"""Textual's own style sheet asks a theme of the terminal's colours for these, when it is changed to at run time."""
_GROUND = {"dark": "#12161c", "light": "#f7f8fa", "ansi": "ansi_default"}


@cache
def look(name: str, symbols: Symbols = UNICODE) -> Look:
    """A palette by its name, one of ``NAMES``."""
    return Look(name, {role: Style.parse(_PALETTES[name][role]) for role in ROLES}, symbols)


@cache
def _ground(palette: str) -> Style:
    return Style.null() if palette == "ansi" else Style(bgcolor=_GROUND[palette])


@cache
def _own(palette: str, colour: str) -> Style:
    return Style.parse("bold " + _OWN.get(palette, {}).get(colour, colour))


def choose(environment: Mapping[str, str], theme: str | None = None, *, plain: bool = False) -> Look:
    """What fits the terminal.

    Args:
        environment: TERM, COLORTERM, NO_COLOR, LC_ALL, LC_CTYPE, LANG, COLORFGBG and DROPLET_CONSOLE_THEME.
        theme: One of ``NAMES`` where a person has said so.
        plain: ASCII signs, whatever the locale says.
    """
    asked = theme or environment.get("DROPLET_CONSOLE_THEME", "")
    symbols = UNICODE if takes_utf8(environment) and not plain else ASCII
    if asked in _PALETTES:
        return look(asked, symbols)
    if "NO_COLOR" in environment or not _many_colours(environment):
        return look("ansi", symbols)
    return look("light" if _light_ground(environment) else "dark", symbols)


def takes_utf8(environment: Mapping[str, str]) -> bool:
    """True where the locale says UTF-8 and the terminal is not the kernel's own console."""
    said = next((environment[key] for key in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(key)), "")
    utf8 = "utf-8" in said.lower() or "utf8" in said.lower()
    return utf8 and environment.get("TERM") not in ("linux", "vt100", "vt220", "dumb")


def _many_colours(environment: Mapping[str, str]) -> bool:
    term = environment.get("TERM", "")
    return environment.get("COLORTERM", "") in ("truecolor", "24bit") or "256color" in term or "direct" in term


def _light_ground(environment: Mapping[str, str]) -> bool:
    """By COLORFGBG ("0;15"), where the terminal sets it; 7 and 15 are the light ones."""
    return environment.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


def ground(name: str) -> Theme:
    """A palette as Textual wants it, for its own widgets and what is under ours; its name is "console-NAME"."""
    roles = {role: words.split(" on ")[0].split(" ")[-1] for role, words in _PALETTES[name].items()}
    ansi = name == "ansi"
    if ansi:
        roles = {role: f"ansi_{colour}" for role, colour in roles.items()}
    return Theme(
        name=f"console-{name}", primary=roles["accent"], accent=roles["accent"], warning=roles["warn"],
        error=roles["bad"], success=roles["good"], foreground=roles["text"], background=_GROUND[name],
        surface=_GROUND[name], panel=_GROUND[name], dark=name != "light", ansi=ansi,
        variables=_ANSI_GROUND if ansi else {},
    )  # fmt: skip
