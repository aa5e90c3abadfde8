"""Overview by keys and mouse, on the real app over a script."""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import io
import json
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from console.domain.telemetry.totals import ModelKey
from console.remote.errors import FailureKind, RemoteError
from console.services.history import GpuKey
from console.services.link import Event, LinkState, Phase
from console.tui import theme
from console.tui.app import ConsoleApp
from console.tui.screens.overview import OverviewScreen
from tests.tui.driven import text
from tests.tui.stories import END, Script, live, stage, story, tick
from tests.unit.cli.samples import gpu, model, sample, server

Scenario = Callable[[Pilot[int], OverviewScreen], Awaitable[None]]


def play(
    scenario: Scenario,
    app: ConsoleApp | None = None,
    *,
    size: tuple[int, int] = (120, 40),
    seconds: int = 300,
) -> None:
    """Run a scenario on the droplet of the story."""
    app = app or stage("prod")
    for event in story(seconds=seconds):
        app.state.board.feed(event)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            screen = app.view_screen
            assert isinstance(screen, OverviewScreen)
            await scenario(pilot, screen)

    asyncio.run(run())


def shown(screen: OverviewScreen) -> str:
    return "\n".join(text(screen.console))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50), (250, 60)])
def test_the_four_that_matter_stand_there_at_every_size(size: tuple[int, int]) -> None:
    async def look(pilot: Pilot[int], screen: OverviewScreen) -> None:
        lines = text(screen.console)
        assert len(lines) == size[1]
        assert all(len(line) == size[0] for line in lines)
        found = "\n".join(lines)
        for words in ("BATCH HIT RATE  61.9 %", "REQUESTS/S  435", "ERRORS  0.0 %", "DRAM THROUGHPUT  25.6 %"):
            assert words in found
        for words in ("PRODUCTION", "● live", "Triton triton ready", "LATENCY", "echo/1", "0 H100", "HOST"):
            assert words in found

    play(look, size=size)


@pytest.mark.parametrize("size", [(1, 1), (10, 3), (30, 8), (79, 23)])
def test_a_tiny_terminal_does_no_harm(size: tuple[int, int]) -> None:
    async def look(pilot: Pilot[int], screen: OverviewScreen) -> None:
        await pilot.press("m", "right", "plus", "down", "p", "p", "escape")
        assert len(text(screen.console)) == size[1]

    play(look, size=size)


def test_ascii_has_no_other_signs() -> None:
    async def look(pilot: Pilot[int], screen: OverviewScreen) -> None:
        assert shown(screen).isascii()

    play(look, stage("prod", look=theme.look("ansi", theme.ASCII)))


def test_the_line_under_the_cursor_is_what_the_graphs_are_of() -> None:
    async def choose(pilot: Pilot[int], screen: OverviewScreen) -> None:
        await pilot.press("down", "down")
        assert screen.picture is not None
        assert screen.picture.chosen.model == ModelKey("triton", "llama", "1")
        found = shown(screen)
        assert "REQUESTS/S  3.00" in found
        assert "BATCH HIT RATE  n/a" in found
        assert "decoupled: it may answer a request many times" in found
        await pilot.press("escape")
        assert "REQUESTS/S  435" in shown(screen)

    play(choose)


def test_a_gpu_can_be_chosen_for_the_dram_graph() -> None:
    async def choose(pilot: Pilot[int], screen: OverviewScreen) -> None:
        while screen.overview.chosen != "gpus":
            await pilot.press("right")
        await pilot.press("down", "down")
        assert screen.picture is not None
        assert screen.picture.chosen.gpu == GpuKey("GPU-1")
        assert "DRAM THROUGHPUT  15.0 %  GPU 1" in shown(screen)
        assert "by the device's own" not in shown(screen)

    play(choose)


def test_zoom_changes_the_time_and_a_large_panel_takes_the_room() -> None:
    async def change(pilot: Pilot[int], screen: OverviewScreen) -> None:
        assert "last 5 min" in shown(screen)
        await pilot.press("plus")
        assert "last 1 min" in shown(screen)
        await pilot.press("minus", "minus")
        assert "last 15 min" in shown(screen)
        await pilot.press("right", "m")
        large = screen.overview.large
        assert large is not None
        assert "HOST  ml" not in shown(screen) or large == "host"
        await pilot.press("escape")
        assert screen.overview.large is None

    play(change)


def test_a_pause_holds_every_figure_still_and_what_comes_is_not_lost() -> None:
    script = Script()

    async def pause(pilot: Pilot[int], screen: OverviewScreen) -> None:
        await pilot.press("p")
        before = text(screen.console)[1:-1]
        script.waiting.extend(Event("prod", sample=tick(second)) for second in range(301, 320))
        await pilot.pause(0.5)
        assert text(screen.console)[1:-1] == before
        assert "PAUSED" in text(screen.console)[0]
        await pilot.press("down")  # another model, at the same moment
        assert screen.picture is not None
        assert screen.picture.sample is not None
        assert screen.picture.sample.seq == 300
        await pilot.press("up", "p")
        await pilot.pause(0.3)
        assert screen.picture.sample.seq == 319
        assert "PAUSED" not in text(screen.console)[0]

    play(pause, stage("prod", script=script))


def test_the_cursor_on_the_time_axis_reads_the_graphs_at_that_moment() -> None:
    async def read(pilot: Pilot[int], screen: OverviewScreen) -> None:
        for _ in range(20):
            await pilot.press("comma")
        assert screen.picture is not None
        moment = screen.picture.chosen.moment
        assert moment is not None
        assert moment == pytest.approx(END - 100, abs=0.1)
        series = screen.picture.series("rps")
        assert series is not None
        value = series.at(moment)
        assert value is not None
        assert f"REQUESTS/S  {value:,.0f}" in shown(screen)
        await pilot.press("escape")
        assert screen.picture.chosen.moment is None

    play(read)


def test_the_mouse_chooses_panels_lines_and_moments() -> None:
    async def click(pilot: Pilot[int], screen: OverviewScreen) -> None:
        await pilot.click(offset=(100, 8))
        assert screen.overview.chosen == "rps"
        assert screen.picture is not None
        assert screen.picture.chosen.moment is not None
        places = {place.panel: place for place in screen.overview._places}
        models = places["models"]
        await pilot.click(offset=(models.x + 3, models.y + 1 + 1 + 1))
        assert screen.overview.chosen == "models"
        assert screen.picture.chosen.model == ModelKey("triton", "echo", "1")

    play(click)


def test_what_is_copied_are_the_figures_of_the_panel() -> None:
    async def copy(pilot: Pilot[int], screen: OverviewScreen) -> None:
        await pilot.press("down", "c")
        copied = screen.console.clipboard
        assert "echo/1: requests\t432" in copied
        while screen.overview.chosen != "dram":
            await pilot.press("right")
        await pilot.press("c")
        assert screen.console.clipboard.startswith("DRAM throughput\t25.6 %")

    play(copy)


def test_an_export_is_private_and_holds_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def export(pilot: Pilot[int], screen: OverviewScreen) -> None:
        await pilot.press("x")
        await pilot.pause()

    play(export)
    files = {path.suffix: path for path in tmp_path.iterdir()}
    assert set(files) == {".csv", ".json"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files.values())
    rows = list(csv.DictReader(io.StringIO(files[".csv"].read_text())))
    assert len(rows) == 300
    assert float(rows[-1]["end"]) == END
    document = json.loads(files[".json"].read_text())
    assert document["schema"] == "overview/1"
    assert document["sample"]["seq"] == 300
    told = {figure["name"]: figure["value"] for figure in document["figures"]}
    assert told["requests"] == pytest.approx(float(rows[-1]["rps"]))
    assert any(one["words"] == "GPU 1 is back" for one in document["happenings"])


def test_a_lost_line_is_said_with_the_age_of_the_figures() -> None:
    async def lose(pilot: Pilot[int], screen: OverviewScreen) -> None:
        error = RemoteError(FailureKind.LOST, "prod: the connection is lost")
        state = LinkState(Phase.WAITING, "prod: the connection is lost; trying again in 4 s", END, error, END + 4)
        screen.state.board.feed(Event("prod", link=state))
        screen.tick(END + 34)
        found = text(screen.console)
        assert "the connection is lost" in found[0]
        assert "the figures below are 34 s old" in found[2]
        assert screen.picture is not None
        assert screen.picture.until == END + 34

    play(lose)


HOSTILE = "\x1b[31m[bold]x[/bold]\x07\r\n\x00\u202e\u200b[/] 1=2 {}\\ \U0001f4a9" + "long " * 100


def test_hostile_names_neither_crash_nor_reach_the_terminal() -> None:
    from console.domain.telemetry.text import printable

    hostile = printable(HOSTILE)
    bad = sample(
        "prod",
        time=END + 1,
        gpus=(gpu(0, name=hostile, uuid=hostile), gpu(1, state="lost", state_reason=hostile)),
        servers=(
            server(
                model(
                    name=hostile, version=hostile, backend=hostile, rps=1e300, hit_rate=float(99), mean_batch=1e-300
                ),
                dataclasses.replace(model(name="b"), state="UNAVAILABLE", reason=hostile),
                name=hostile,
                version=hostile,
            ),
        ),
        unavailable={"/gpus/0/dram_percent": hostile},
    )
    script = Script()

    async def look(pilot: Pilot[int], screen: OverviewScreen) -> None:
        script.waiting.append(Event("prod", sample=bad))
        await pilot.pause(0.4)
        for key in ("down", "down", "right", "right", "m", "m", "plus", "c", "escape"):
            await pilot.press(key)
            found = shown(screen)
            assert not any(ord(char) < 32 and char != "\n" for char in found)
            assert "\u202e" not in found
            assert all(len(line) <= 120 for line in found.split("\n"))

    play(look, stage("prod", script=script))


def test_before_anything_is_known_it_says_so() -> None:
    async def run() -> None:
        app = stage("prod")
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            assert "not connected" in text(app)[1] or "nothing was heard" in "\n".join(text(app))
            await pilot.press("down", "right", "m", "m", "c", "w", "comma", "tab", "plus")
            app.state.board.feed(live())
            await pilot.pause(0.3)

    asyncio.run(run())


def test_a_droplet_with_thousands_of_models_scrolls() -> None:
    many = server(*(model(name=f"m{number:04}", rps=1.0) for number in range(2000)))
    script = Script()

    async def scroll(pilot: Pilot[int], screen: OverviewScreen) -> None:
        script.waiting.append(Event("prod", sample=sample("prod", time=END + 1, servers=(many,))))
        await pilot.pause(0.4)
        await pilot.press("end")
        assert "m1999/1" in shown(screen)
        await pilot.press("home")
        assert "all models" in shown(screen)

    play(scroll, stage("prod", script=script))
