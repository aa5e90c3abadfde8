"""`watch TARGET...`: samples as they come, for people or as JSON Lines; the state of the line goes to stderr."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Sequence

from console.cli import context
from console.cli.exits import Exit
from console.cli.fleet import Watching, open_fleet
from console.cli.options import Options
from console.cli.output import Output, standard
from console.cli.prompts import TerminalPrompter, terminal_prompter
from console.cli.render.ticks import Ticks
from console.domain.telemetry.encode import encode
from console.domain.telemetry.sample import Sample
from console.remote.errors import FailureKind, RemoteError
from console.services.link import Event, LinkState, Phase
from console.settings.schema import Droplet, Settings

NAME_TRIES = 3
"""A name that was never found is a slip: it is not looked up without end."""


def run(
    words: Sequence[str],
    options: Options,
    *,
    interval: float | None,
    count: int | None,
    output: Output | None = None,
) -> Exit:
    """Print samples until interrupted, or until ``count`` of each droplet.

    Args:
        words: The targets.
        options: The shared flags; ``timeout`` is how long a droplet may give nothing before that is an error.
        interval: Seconds between samples, or None for what the settings say.
        count: Samples of each droplet, or None for no end.
        output: Where to; the process's own by default.
    """
    output = output or standard()
    settings = context.read_settings(options)
    droplets = context.choose_droplets(settings, words, interval)
    prompter = terminal_prompter()
    waited = prompter.waited if isinstance(prompter, TerminalPrompter) else lambda: 0.0
    watcher = Watcher(droplets, settings, options, count, output, waited)
    try:
        with open_fleet(droplets, prompter) as fleet:
            return watcher.follow(fleet)
    finally:
        if isinstance(prompter, TerminalPrompter):
            prompter.close()


class Watcher:
    """Prints events and decides when it is over."""

    def __init__(
        self,
        droplets: Sequence[Droplet],
        settings: Settings,
        options: Options,
        count: int | None,
        output: Output,
        waited: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._droplets = {droplet.name: droplet for droplet in droplets}
        self._settings = settings
        self._options = options
        self._output = output
        self._clock = clock
        self._waited = waited
        self._left = {droplet.name: count for droplet in droplets}
        self._heard = {droplet.name: clock() for droplet in droplets}
        self._failed = False
        self._seen: set[str] = set()
        self._errors: dict[str, RemoteError] = {}
        """What went wrong last with each droplet that gives nothing."""
        self._nameless: Counter[str] = Counter()
        self._hinted: set[tuple[str, FailureKind]] = set()
        self._phases: dict[str, Phase] = {}
        self._ticks = Ticks(droplets, output)

    def follow(self, fleet: Watching) -> Exit:
        """Until every droplet gave its samples or failed for good."""
        while self._left:
            event = fleet.events(0.2)
            if event is not None and event.droplet in self._left:
                self._take(event)
            if self._options.timeout is not None:
                self._check_silence(self._options.timeout)
        return Exit.NO_CONNECTION if self._failed else Exit.DONE

    def _take(self, event: Event) -> None:
        if event.link is not None:
            self._link(event.droplet, event.link)
        if event.sample is None:
            return
        name = event.droplet
        self._heard[name] = self._clock() - self._waited()
        self._errors.pop(name, None)
        sample = self._narrowed(event.sample)
        if self._options.json:
            self._output.document(encode(sample))
        else:
            self._output.lines(self._ticks.lines(sample))
        self._output.flush()
        left = self._left[name]
        if left is not None:
            self._left[name] = left - 1
            if left <= 1:
                del self._left[name]

    def _narrowed(self, sample: Sample) -> Sample:
        """The server that was asked for. It must be there at first; later it may come and go."""
        wanted = self._options.server
        found = context.one_server(sample, wanted)
        if found is None:
            if sample.droplet not in self._seen:
                raise context.no_server(sample, wanted or "")
            reasons = {**sample.unavailable, "/servers": f"there is no Triton server {wanted} just now"}
            found = dataclasses.replace(sample, servers=(), unavailable=reasons)
        self._seen.add(sample.droplet)
        return found

    def _link(self, name: str, link: LinkState) -> None:
        if self._phases.get(name) is link.phase is Phase.LIVE:
            return  # told again with a new round trip time
        self._phases[name] = link.phase
        if link.phase is Phase.FAILED and link.error is not None:
            self._give_up(name, link.error)
            return
        if link.error is not None:
            self._errors[name] = link.error
            if link.error.kind is FailureKind.NAME_NOT_RESOLVED and name not in self._seen:
                self._nameless[name] += 1
                if self._nameless[name] >= NAME_TRIES:
                    self._give_up(name, link.error)
                    return
        moment = time.strftime("%H:%M:%S", time.localtime(link.since))
        named = link.words.startswith((f"{name}: ", f"{name} "))
        self._output.tell(f"{moment} {link.words if named else f'{name}: {link.words}'}")
        if link.error is not None and link.error.kind is not FailureKind.LIMITED:  # when, it said already
            self._hint(name, link.error)

    def _check_silence(self, timeout: float) -> None:
        now = self._clock() - self._waited()
        for name in [name for name in self._left if now - self._heard[name] > timeout]:
            silence = f"nothing came from {name} for {timeout:g} s"
            last = self._errors.get(name)
            if last is None:
                self._give_up(name, RemoteError(FailureKind.TIMED_OUT, silence))
            else:
                self._give_up(name, RemoteError(last.kind, f"{silence}: {last}", hint=last.hint))

    def _give_up(self, name: str, error: RemoteError) -> None:
        self._output.tell(f"droplet-console: {error}")
        self._hint(name, error)
        self._failed = True
        del self._left[name]

    def _hint(self, name: str, error: RemoteError) -> None:
        """What to do about it, once: it does not change from try to try."""
        if (name, error.kind) in self._hinted:
            return
        self._hinted.add((name, error.kind))
        hint = context.explained(error, self._droplets[name], self._settings).hint
        if hint:
            self._output.tell(hint)
