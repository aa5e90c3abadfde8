from __future__ import annotations

from collections import Counter

import pytest

from console.cli.front import PALETTES
from console.services.actions import ACTIONS, EVENTS, EVERYWHERE, FLEET, OVERVIEW, Action, allowed, on_screen
from console.tui import theme
from console.tui.screens.base import ConsoleScreen
from console.tui.screens.events import EventsScreen
from console.tui.screens.fleet import FleetScreen
from console.tui.screens.overview import OverviewScreen

SCREENS: dict[str, type[ConsoleScreen]] = {FLEET: FleetScreen, OVERVIEW: OverviewScreen, EVENTS: EventsScreen}


@pytest.mark.parametrize("mode", sorted(EVERYWHERE))
def test_every_action_of_a_screen_is_something_that_it_does(mode: str) -> None:
    missing = [action.id for action in on_screen(mode) if not hasattr(SCREENS[mode], f"action_{action.id}")]
    assert missing == []


@pytest.mark.parametrize("mode", sorted(EVERYWHERE))
def test_no_key_means_two_things_on_a_screen(mode: str) -> None:
    keys = Counter(key for action in on_screen(mode) for key in action.keys)
    assert [key for key, count in keys.items() if count > 1] == []


def test_ids_are_unique() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)


def test_read_only_mode_forbids_what_mutates_and_nothing_else() -> None:
    restart = Action("restart", "Restart Triton", ("ctrl+r",), "Droplet", mutates=True)
    assert not allowed(restart, read_only=True)
    assert allowed(restart, read_only=False)
    assert all(allowed(action, read_only=True) for action in ACTIONS)


def test_keys_are_shown_as_people_read_them() -> None:
    by_id = {action.id: action.key for action in ACTIONS}
    assert (by_id["help"], by_id["filter"], by_id["palette"], by_id["back"]) == ("?", "/", "^p", "esc")


def test_the_command_line_offers_the_palettes_that_there_are() -> None:
    assert PALETTES == theme.NAMES
