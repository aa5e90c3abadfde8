from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from console.remote.errors import FailureKind, RemoteError
from console.services.link import Event, LinkState, Phase
from console.tui.screens.fleet import FleetScreen
from tests.tui.picture import lines, text
from tests.tui.stories import END, Script, live, stage, tick

Play = Callable[[Pilot[int], Script], Coroutine[Any, Any, None]]
NAMES = ("prod", "staging", "lab")


def play(act: Play, *names: str, size: tuple[int, int] = (120, 30), events: list[Event] | None = None) -> None:
    """Run the app on the fleet over a script, its first events taken in."""

    async def run() -> None:
        script = Script()
        script.waiting.extend(events or [])
        app = stage(*(names or NAMES), script=script, current="")
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await act(pilot, script)

    asyncio.run(run())


async def settle(pilot: Pilot[int]) -> None:
    """Until the app has taken in what the script says."""
    await pilot.pause(0.5)


def fleet(pilot: Pilot[int]) -> FleetScreen:
    screen = pilot.app.screen
    assert isinstance(screen, FleetScreen)
    return screen


def refused(droplet: str) -> Event:
    error = RemoteError(FailureKind.REFUSED, f"{droplet}: port 22 refuses the connection", hint="Is sshd running?")
    return Event(droplet, link=LinkState(Phase.WAITING, f"{error}; soon", END, error=error, retry_at=END + 4))


def busy(droplet: str, rps: float) -> Event:
    made = tick(300, droplet)
    echo = dataclasses.replace(made.servers[0].models[0], rps=rps)
    return Event(
        droplet, sample=dataclasses.replace(made, servers=(dataclasses.replace(made.servers[0], models=(echo,)),))
    )


EVENTS = [live("prod"), busy("prod", 10.0), live("staging"), busy("staging", 500.0), refused("lab")]


def test_before_anything_is_known_every_droplet_has_its_line() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        shown = lines(pilot.app)
        assert [line.split()[0] for line in shown[2:5]] == list(NAMES)
        assert "not yet tried" in shown[2]
        assert "0 of 3 live" in shown[0]

    play(act)


def test_figures_states_and_the_reason_of_the_line_under_the_cursor() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        shown = lines(pilot.app)
        assert "2 of 3 live" in shown[0]
        assert "live" in shown[2]
        assert "10.0" in shown[2]
        assert "retrying" in shown[4]
        await pilot.press("end")
        said = text(pilot.app)
        assert "lab: port 22 refuses the connection" in said
        assert "Is sshd running?" in said

    play(act, events=EVENTS)


def test_the_cursor_stays_on_its_droplet_whatever_the_order() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        await pilot.press("down")
        assert fleet(pilot).target == "staging"
        for key in (">", ">", "R", ">", "g"):
            await pilot.press(key)
            assert fleet(pilot).target == "staging"

    play(act, events=EVENTS)


def test_sorting_by_rps_puts_the_busiest_first_and_who_has_none_last() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        table = fleet(pilot).table
        while table.sort != "rps":
            await pilot.press(">")
        await pilot.press("R")
        assert [row.key for row in table.rows] == ["staging", "prod", "lab"]

    play(act, events=EVENTS)


def test_a_filter_narrows_while_one_types_and_escape_takes_it_away() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        await pilot.press("slash", "s", "t", "a", "g")
        await pilot.pause()
        assert [row.key for row in fleet(pilot).table.rows] == ["staging"]
        await pilot.press("enter")
        await pilot.pause()
        assert "/stag" in lines(pilot.app)[0]
        await pilot.press("slash", "x", "escape")
        await pilot.pause()
        assert [row.key for row in fleet(pilot).table.rows] == ["staging"]

    play(act, events=EVENTS)


def test_a_filter_that_nothing_matches_says_so() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        await pilot.press("slash", "q", "q", "enter")
        await pilot.pause()
        assert "nothing matches /qq" in text(pilot.app)

    play(act, events=EVENTS)


def test_marked_droplets_are_what_an_action_is_about() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        await pilot.press("space", "space", "r")
        assert script.retried == ["prod", "staging"]
        await pilot.press("home", "space", "space", "r")
        assert script.retried[2:] == ["lab"]

    play(act, events=EVENTS)


def test_enter_opens_a_droplet_and_escape_comes_back_to_the_same_line() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        await pilot.press("down", "enter")
        await settle(pilot)
        assert lines(pilot.app)[0].split()[0] == "staging"
        await pilot.press("escape")
        await settle(pilot)
        assert fleet(pilot).target == "staging"

    play(act, events=EVENTS)


def test_jump_goes_to_a_model_by_a_part_of_its_name() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        await pilot.press("colon", *"ec@st")
        await pilot.pause()
        assert "echo@staging" in text(pilot.app)
        await pilot.press("enter")
        await settle(pilot)
        assert lines(pilot.app)[0].split()[0] == "staging"

    play(act, events=EVENTS)


def test_paused_figures_stay_and_run_again() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        await pilot.press("p")
        script.waiting.append(busy("prod", 77.0))
        await settle(pilot)
        assert "PAUSED" in lines(pilot.app)[0]
        assert "77.0" not in text(pilot.app)
        await pilot.press("p")
        await settle(pilot)
        assert "PAUSED" not in lines(pilot.app)[0]
        assert "77.0" in text(pilot.app)

    play(act, events=EVENTS)


def test_figures_of_a_lost_droplet_say_how_old_they_are() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        script.waiting.append(refused("prod"))
        await settle(pilot)
        assert "10.0" in lines(pilot.app)[2]
        assert "figures are" in text(pilot.app)

    play(act, events=EVENTS)


def test_export_writes_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def act(pilot: Pilot[int], script: Script) -> None:
        await pilot.press("slash", *"stag", "enter", "x")
        await pilot.pause()
        (table,) = tmp_path.glob("fleet-*.csv")
        heading, only = table.read_text().splitlines()
        assert heading.startswith("name,link,triton,models,rps")
        assert only.startswith("staging,")
        (document,) = tmp_path.glob("fleet-*.json")
        assert [one["droplet"] for one in json.loads(document.read_text())["droplets"]] == ["staging"]
        assert "written:" in lines(pilot.app)[-1]

    play(act, events=EVENTS)


def test_events_are_listed_newest_first_and_lead_to_their_droplet() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        await pilot.press("3")
        await settle(pilot)
        said = text(pilot.app)
        assert "connected" in said
        assert "refuses the connection" in said
        await pilot.press("slash", *"refuses", "enter", "enter")
        await settle(pilot)
        assert lines(pilot.app)[0].split()[0] == "lab"

    play(act, events=EVENTS)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50), (250, 60), (40, 10), (20, 5)])
def test_every_size_shows_the_droplets(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        assert "prod" in lines(pilot.app)[2]

    play(act, events=EVENTS, size=size)


def test_at_80_columns_what_matters_most_is_there() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        heading = lines(pilot.app)[1]
        assert all(word in heading for word in ("LINK", "TRITON", "RPS", "HIT %", "ERR %", "DRAM %"))
        assert "? help" in lines(pilot.app)[-1]

    play(act, events=EVENTS, size=(80, 24))


def test_help_shows_the_keys_of_this_screen_and_the_palette_finds_one() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        said = text(pilot.app)
        assert "Sort by the next column" in said
        assert "Show less time in the graphs" not in said
        await pilot.press("escape", "ctrl+p", *"sort next", "enter")
        await pilot.pause(0.2)
        assert fleet(pilot).table.sort == "name"

    play(act, events=EVENTS)


HOSTILE = "\x1b[31m[bold red]\x1b]52;c;aGk=\x07\u202egnp.[/] \x9b2J\n\x00 [@click=app.quit]x[/]"


def test_hostile_words_are_shown_and_never_obeyed() -> None:
    error = RemoteError(FailureKind.PROTOCOL, HOSTILE, hint=HOSTILE)
    hostile = Event("lab", link=LinkState(Phase.FAILED, HOSTILE, END, error=error))
    made = tick(300, "prod")
    broken = dataclasses.replace(made.servers[0], state=HOSTILE, reason=HOSTILE)

    async def act(pilot: Pilot[int], script: Script) -> None:
        for keys in (("end",), ("home",), ("3",), ("slash", *"bold", "enter")):
            await pilot.press(*keys)
            await settle(pilot)
            shown = lines(pilot.app)
            assert all(line.isprintable() for line in shown)
        assert "[bold red]" in "".join(shown)

    play(act, events=[live("prod"), Event("prod", sample=dataclasses.replace(made, servers=(broken,))), hostile])


def test_a_droplet_of_which_nothing_is_known_keeps_its_line() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        assert "not yet tried" in lines(pilot.app)[4]

    play(act, events=EVENTS[:4])


def test_the_colours_change_and_stay_readable() -> None:
    async def act(pilot: Pilot[int], script: Script) -> None:
        for name in ("light", "ansi", "dark"):
            await pilot.press("t")
            await pilot.pause()
            assert pilot.app.theme == f"console-{name}"
            assert "prod" in lines(pilot.app)[2]

    play(act, events=EVENTS)
