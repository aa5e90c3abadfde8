"""`status TARGET...`: one picture of each droplet, then the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from console.cli import context
from console.cli.exits import Exit
from console.cli.fleet import Watching, open_fleet
from console.cli.options import Options
from console.cli.output import Output, standard
from console.cli.prompts import TerminalPrompter, terminal_prompter
from console.domain.telemetry.encode import encode
from console.domain.telemetry.sample import SCHEMA as SAMPLE_SCHEMA
from console.domain.telemetry.sample import Sample
from console.domain.words import problems
from console.remote.errors import FailureKind, RemoteError
from console.services.link import Event, Phase
from console.settings.schema import Droplet, Settings

TIMEOUT = 30.0
"""Seconds for a droplet to give its picture, without the time a person takes to answer questions."""
TURNS = 120.0
"""Seconds more for those who wait for a turn (four logins in 30 s to one address), unless --timeout is given."""
INTERVAL = 1.0
"""Seconds between the two samples that rates need."""
_PATIENCE = 4.0
"""Seconds to wait for the second sample once the first is there; then the first has to do."""

SCHEMA = "status/1"


def run(words: Sequence[str], options: Options, *, first: bool, output: Output | None = None) -> Exit:
    """Print the pictures.

    Args:
        words: The targets.
        options: The shared flags.
        first: Take the first sample, which has no rates.
        output: Where to; the process's own by default.
    """
    output = output or standard()
    settings = context.read_settings(options)
    droplets = context.choose_droplets(settings, words, INTERVAL)
    prompter = terminal_prompter()
    waited = prompter.waited if isinstance(prompter, TerminalPrompter) else lambda: 0.0
    collector = Collector(
        droplets,
        first=first,
        timeout=options.timeout or TIMEOUT,
        waited=waited,
        turns=0.0 if options.timeout else TURNS,
        tell=output.tell,
    )
    try:
        with open_fleet(droplets, prompter) as fleet:
            results = collector.collect(fleet)
    finally:
        if isinstance(prompter, TerminalPrompter):
            prompter.close()
    return _report(droplets, results, settings, options, output)


class Collector:
    """Waits for one good sample, or the failure, of each droplet.

    Args:
        droplets: Which.
        first: The first sample is good enough.
        timeout: Seconds for all of it.
        waited: Seconds that a person took to answer questions, which do not count.
        turns: Seconds by which waiting for a turn among rationed logins may make it longer.
        tell: Takes what is said meanwhile.
        clock: Seconds.
    """

    def __init__(
        self,
        droplets: Sequence[Droplet],
        *,
        first: bool,
        timeout: float,
        waited: Callable[[], float],
        turns: float = 0.0,
        tell: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open = {droplet.name for droplet in droplets}
        self._order = [droplet.name for droplet in droplets]
        self._first = first
        self._timeout = timeout
        self._waited = waited
        self._turns = turns
        self._tell = tell
        self._clock = clock
        self._samples: dict[str, tuple[Sample, float]] = {}
        self._errors: dict[str, RemoteError] = {}
        self._rationed: set[str] = set()
        self._ends = 0.0

    def collect(self, fleet: Watching) -> dict[str, Sample | RemoteError]:
        """The outcome of each droplet, by name."""
        started = self._clock()
        self._ends = started + self._timeout
        latest = self._ends + self._turns
        while self._open:
            event = fleet.events(0.1)
            if event is not None:
                self._take(event)
            now = self._clock()
            for name in [name for name in self._open if name in self._samples]:
                if now - self._samples[name][1] > _PATIENCE:
                    self._open.discard(name)
            if now - self._waited() > min(self._ends, latest):
                break
        return {name: self._outcome(name) for name in self._order}

    def _take(self, event: Event) -> None:
        name = event.droplet
        if name not in self._open:
            return
        if event.sample is not None:
            self._samples[name] = (event.sample, self._samples[name][1] if name in self._samples else self._clock())
            if self._first or event.sample.interval is not None:
                self._open.discard(name)
        elif event.link is not None and event.link.error and event.link.phase in (Phase.FAILED, Phase.WAITING):
            self._errors[name] = error = event.link.error
            if event.link.phase is Phase.FAILED or error.kind is not FailureKind.LIMITED:
                self._open.discard(name)
            else:  # a turn among rationed logins is waited for
                if self._turns and name not in self._rationed:
                    self._tell(event.link.words)
                self._rationed.add(name)
                turn = self._clock() - self._waited() + (error.retry_after or 0.0)
                self._ends = max(self._ends, turn + self._timeout)

    def _outcome(self, name: str) -> Sample | RemoteError:
        if name in self._samples:
            return self._samples[name][0]
        return self._errors.get(name) or RemoteError(
            FailureKind.TIMED_OUT,
            f"no figures came from {name} within {self._timeout:g} s",
            hint="Wait longer with --timeout S, or follow it with `droplet-console watch`.",
        )


def _report(
    droplets: Sequence[Droplet],
    results: dict[str, Sample | RemoteError],
    settings: Settings,
    options: Options,
    output: Output,
) -> Exit:
    status = Exit.DONE
    documents = []
    for place, droplet in enumerate(droplets):
        result = results[droplet.name]
        if isinstance(result, Sample):
            shown: Sample | Exception = context.one_server(result, options.server) or context.no_server(
                result, options.server or ""
            )
        else:
            shown = context.explained(result, droplet, settings)
        if isinstance(shown, Exception) and not output.terminal:
            output.tell(f"droplet-console: {' '.join(str(shown).split())}")
        status = max(status, _verdict(shown))
        if options.json:
            documents.append(_document(droplet, shown))
        else:
            _print(droplet, shown, settings, output, place > 0)
    if options.json:
        output.document({"schema": SCHEMA, "droplets": documents})
    return status


def _verdict(shown: Sample | Exception) -> Exit:
    if isinstance(shown, Sample):
        return Exit.NOT_WELL if problems.problems(shown) else Exit.DONE
    return Exit.NO_CONNECTION if isinstance(shown, RemoteError) else Exit.USAGE


def _document(droplet: Droplet, shown: Sample | Exception) -> dict[str, object]:
    """A sample, or what stands in its place; the kind is "usage" where the question was wrong, not the droplet."""
    if isinstance(shown, Sample):
        return encode(shown)
    remote = shown if isinstance(shown, RemoteError) else None
    error = {
        "kind": remote.kind.value if remote else "usage",
        "message": str(shown),
        "hint": remote.hint if remote else None,
    }
    return {"schema": SAMPLE_SCHEMA, "droplet": droplet.name, "error": error}


def _print(droplet: Droplet, shown: Sample | Exception, settings: Settings, output: Output, below: bool) -> None:
    from console.cli.render import picture  # not needed for --json

    if below:
        output.line()
    if isinstance(shown, Sample):
        output.lines(picture.picture(droplet, shown, settings.thresholds, output))
    else:
        output.lines(picture.failure(droplet, shown, output))
