"""Renders every screen of the demo to pictures: ``python -m pictures FOLDER`` (``make screens``).

The real app on the real demo, followed through one loop of it (two minutes), drawn without a terminal. It writes
SVG files that load no font from anywhere, and with ``--png`` PNG files beside them, by rsvg-convert.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.terminal_theme import TerminalTheme
from textual.events import Key
from textual.pilot import Pilot

from console.demo.start import DemoDroplet, start_demo
from console.remote.prompts import HostKeyQuestion, NoPrompter
from console.services.watching import watch
from console.settings.schema import Settings
from console.tui import theme
from console.tui.app import ConsoleApp
from console.tui.bridge import Bridge, Watching
from console.tui.modals.host_key import HostKeyModal
from console.tui.modals.secret import SecretModal
from console.tui.state import State
from pictures.svg import picture

SMALL, USUAL, LARGE = (80, 24), (120, 40), (200, 50)
PEAK_S, HOT_S, AFTER_S = 54.0, 85.0, 109.5
"""Seconds after the demo's start: requests share executions; the GPU is too hot; Triton is back, a model is not."""
_SETTLES_S = 0.6
_SIGNS = {"plus": "+", "question_mark": "?"}


@dataclass(frozen=True, slots=True)
class Camera:
    """Takes pictures of one running app.

    Attributes:
        folder: Where they go.
        pilot: Changes the terminal's size.
    """

    folder: Path
    app: ConsoleApp
    pilot: Pilot[int]

    async def press(self, *keys: str) -> None:
        """Press keys one after the other, as a terminal sends them."""
        # Not the pilot's: it waits for an answer of every widget, also of those that a key has just removed.
        for key in keys:
            sign = _SIGNS.get(key, key if len(key) == 1 else None)
            self.app.post_message(Key(key, sign))
            await asyncio.sleep(_SETTLES_S / 3)
        await asyncio.sleep(_SETTLES_S)

    async def take(self, name: str, size: tuple[int, int] = USUAL) -> None:
        """Write the picture of what is shown, at that size of the terminal."""
        await self.pilot.resize_terminal(*size)
        await asyncio.sleep(_SETTLES_S)
        app = self.app
        shown = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
        title = f"droplet-console demo ({size[0]}×{size[1]})"
        file = self.folder / f"{name}.svg"
        file.write_text(picture(shown or "", size, title, _colours(app.look.name)), encoding="utf-8")
        sys.stderr.write(f"{file}\n")

    async def shown(self, modal: Callable[[], object], name: str) -> None:
        """The picture of a dialogue, which is then closed."""
        self.app.push_screen(modal())  # type: ignore[call-overload]  # any screen will do
        await self.take(name)
        await self.press("escape")


def _colours(name: str) -> TerminalTheme:
    """The terminal that a palette is meant for: its ground and ink, and 16 colours as most terminals have them."""
    ground, ink = {"dark": ("#12161c", "#c3c9d4"), "light": ("#f7f8fa", "#2f3640")}.get(
        name, ("#000000", "#d0d0d0")
    )
    words = (
        "#000000 #cd3131 #0dbc79 #e5e510 #2472c8 #bc3fbc #11a8cd #e5e5e5 "
        "#7f7f7f #f14c4c #23d18b #f5f543 #3b8eea #d670d6 #29b8db #ffffff"
    )
    colours = [_rgb(word) for word in words.split()]
    return TerminalTheme(_rgb(ground), _rgb(ink), colours[:8], colours[8:])


def _rgb(word: str) -> tuple[int, int, int]:
    return int(word[1:3], 16), int(word[3:5], 16), int(word[5:7], 16)


async def photograph(demo: DemoDroplet, folder: Path, started: float) -> None:
    """Follow the demo for one loop and take all pictures."""

    def begin() -> Watching:
        return watch([demo.droplet], prompter=NoPrompter()).__enter__()

    state = State({demo.droplet.name: demo.droplet}, Settings(droplets=(demo.droplet,)), demo=True, current="demo")
    bridge = Bridge(begin)
    app = ConsoleApp(state, bridge, theme.look("dark"))
    try:
        async with app.run_test(size=USUAL) as pilot:
            camera = Camera(folder, app, pilot)
            for second, act in ((PEAK_S, _at_the_peak), (HOT_S, _in_trouble), (AFTER_S, _afterwards)):
                await asyncio.sleep(max(started + second - time.monotonic(), 0.1))
                await act(camera)
    finally:
        bridge.close()


async def _at_the_peak(camera: Camera) -> None:
    await camera.press("plus", "plus")
    await camera.take("overview")
    await camera.take("overview-80x24", SMALL)
    await camera.take("overview-200x50", LARGE)
    for name, look in (
        ("light", theme.look("light")),
        ("16-colours", theme.look("ansi")),
        ("ascii", theme.look("ansi", theme.ASCII)),
    ):
        camera.app.use_look(look)
        await camera.take(f"overview-{name}")
    camera.app.use_look(theme.look("dark"))


async def _in_trouble(camera: Camera) -> None:
    await camera.take("overview-hot")
    await camera.press("left", "m")
    await camera.take("panel-large")
    await camera.press("m", "right")


async def _afterwards(camera: Camera) -> None:
    await camera.take("overview-after-a-crash")
    await camera.press("1")
    await camera.take("fleet")
    await camera.press("3")
    await camera.take("events")
    await camera.press("question_mark")
    await camera.take("help")
    await camera.press("escape", "ctrl+p")
    await camera.take("palette")
    await camera.press("escape")
    fingerprint = "SHA256:p/pI4kOhHv/O7o7HbdM+k47XPDIzsH1ajqD+9i2YYuI"
    question = HostKeyQuestion("gpu-1.example", "ssh-ed25519", fingerprint)
    await camera.shown(lambda: HostKeyModal(question), "host-key")
    words = "Passphrase for ~/.ssh/id_ed25519"
    await camera.shown(lambda: SecretModal(words, again=False, declined="the key is not used"), "passphrase")


def _to_png(folder: Path) -> None:
    program = shutil.which("rsvg-convert")
    if program is None:
        return
    for file in sorted(folder.glob("*.svg")):
        command = [program, "--format", "png", "--output", str(file.with_suffix(".png")), str(file)]
        subprocess.run(command, check=True, timeout=60)


def main() -> int:
    """Take all pictures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/screens")
    folder.mkdir(parents=True, exist_ok=True)
    sys.stderr.write("two minutes: the demo's whole loop is followed\n")
    with start_demo(stand_in=True) as demo:
        started = time.monotonic()
        asyncio.run(photograph(demo, folder, started))
    if "--png" in sys.argv:
        _to_png(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
