from __future__ import annotations

import pytest

from console.tui import theme


@pytest.mark.parametrize(
    ("environment", "name", "unicode"),
    [
        ({"TERM": "xterm-256color", "LANG": "en_US.UTF-8"}, "dark", True),
        ({"TERM": "xterm", "COLORTERM": "truecolor", "LC_ALL": "C.utf8"}, "dark", True),
        ({"TERM": "xterm-256color", "LANG": "C.UTF-8", "COLORFGBG": "0;15"}, "light", True),
        ({"TERM": "xterm", "LANG": "C.UTF-8"}, "ansi", True),
        ({"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"}, "ansi", True),
        ({"TERM": "linux", "LANG": "C.UTF-8"}, "ansi", False),
        ({"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "POSIX"}, "dark", False),
        ({}, "ansi", False),
        ({"DROPLET_CONSOLE_THEME": "light", "LANG": "C.UTF-8"}, "light", True),
    ],
)
def test_the_look_fits_the_terminal(environment: dict[str, str], name: str, unicode: bool) -> None:
    look = theme.choose(environment)
    assert (look.name, look.symbols.unicode) == (name, unicode)


def test_a_person_has_the_last_word() -> None:
    look = theme.choose({"TERM": "xterm-256color", "LANG": "C.UTF-8"}, "ansi", plain=True)
    assert (look.name, look.symbols.unicode) == ("ansi", False)


@pytest.mark.parametrize("name", theme.NAMES)
def test_every_palette_has_every_role_and_every_droplet_colour(name: str) -> None:
    look = theme.look(name)
    assert set(look.styles) == set(theme.ROLES)
    for colour in ("red", "green", "yellow", "blue", "magenta", "cyan", "white", None):
        assert look.named(colour).bold


def test_ascii_signs_are_ascii_and_as_wide() -> None:
    for field in theme.Symbols.__slots__:
        plain, rich = getattr(theme.ASCII, field), getattr(theme.UNICODE, field)
        if isinstance(plain, str):
            assert plain.isascii()
            assert len(plain) == len(rich), field
