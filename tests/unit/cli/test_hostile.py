"""Every key of the telemetry document with every wrong value, from the line to what the command line prints."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.cli import main
from console.cli.render.picture import picture
from console.cli.render.ticks import Ticks
from console.domain.telemetry.builder import SampleBuilder
from console.domain.telemetry.encode import encode
from console.domain.telemetry.reasons import nullable
from console.domain.telemetry.sample import Sample
from console.domain.telemetry.shape import DOCUMENT, Branch, Many, Shape
from console.domain.thresholds import Thresholds
from console.settings.errors import SettingsError
from console.settings.load import parse
from console.settings.schema import Droplet
from tests.unit.cli.fakes import kept, settings_file, text

CAPTURED = Path(__file__).parents[2] / "data/telemetry/triton.jsonl.gz"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
EVIL = "\x1b]0;owned\x07\x1b[31mX\x9b2J\u202eabc\u2066\u200b\0[bold red]y[/] \ud800 \r\n\t"
NUMBERS = [True, -1, -0.5, 1.5, 1e19, 2**64 - 1, 10**4000, -(10**4000), 1e308, float("inf"), float("nan")]
WRONG: list[object] = [
    *NUMBERS,
    EVIL,
    "x" * 1_000_000,
    "12",
    [],
    [[[]]],
    ["x"] * 40,
    {},
    {"a": {}},
    {EVIL: EVIL},
    [None, {"pid": 1, "process": EVIL, "memory": -1}],
    None,
]
LEAVES: dict[str, object] = {
    "process": "python3",
    "text": "text",
    "flag": True,
    "count": 12,
    "number": 12.5,
    "signed": 12.5,
    "percent": 62.5,
    "words": ["SwPowerCap"],
    "batch": [3, 90_000],
    "holders": [{"pid": 12, "process": "python3", "memory": 1 << 30, "container": "c", "orphan": False}],
}
NAMES = {"GPUs and MIG devices": "GPU-1", "batch sizes": "8", "reasons": "/host/disk"}


def filled(shape: Shape) -> Any:
    """A document with every key that one may have."""
    if isinstance(shape, Branch):
        return {name: filled(inner) for name, inner in shape.keys.items()}
    if isinstance(shape, Many):
        return {NAMES.get(shape.what, "name"): filled(shape.of)}
    return LEAVES[shape.__name__]


def captured() -> dict[str, Any]:
    """What a real Triton told, as the last line of the recording has it."""
    with gzip.open(CAPTURED) as lines:
        *_, last = lines
    server: dict[str, Any] = json.loads(last)["server"]
    return server


def places(value: object, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield above
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*above, key))


def spoiled(document: dict[str, Any], place: tuple[str, ...], wrong: object) -> Any:
    if not place:
        return wrong
    return {**document, place[0]: spoiled(document.get(place[0]) or {}, place[1:], wrong)}


WHOLE = filled(DOCUMENT)


class Shown:
    """Lines of one stream, as far as the terminal."""

    def __init__(self) -> None:
        self._builder = SampleBuilder("d")
        self._output = kept(terminal=True)
        self._ticks = Ticks([Droplet("d")], self._output)
        self._seq = -1

    def feed(self, document: object, *, full: bool, **more: object) -> Sample | None:
        self._seq += 1
        line = {"seq": self._seq, "time": 1.7e9, "mono": 10.0 + self._seq, "full": full, "doc": document, **more}
        sample = self._builder.feed(line, arrived=1.7e9, stream="s")
        assert sample is not None or self._builder.problem, "a line that is not used is told"
        if sample is None:
            return None
        self._output.lines(self._ticks.lines(sample))
        self._output.lines(picture(Droplet("d"), sample, Thresholds(), self._output))
        self._output.document(encode(sample))
        explained(sample, sample, "")
        return sample

    def check(self) -> None:
        shown = text(self._output.out)
        found = RAW.search(shown)
        assert found is None, ascii(shown[max(found.start() - 40, 0) : found.end() + 40])
        assert len(shown) < 400_000


def explained(part: object, sample: Sample, pointer: str) -> None:
    """Every figure that is not there has its reason."""
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        for name in nullable(type(part)):
            assert getattr(part, name) is not None or sample.unavailable.get(f"{pointer}/{name}"), (
                f"{pointer}/{name}"
            )
        for field in dataclasses.fields(part):
            explained(getattr(part, field.name), sample, f"{pointer}/{field.name}")
    elif isinstance(part, tuple):
        for number, inner in enumerate(part):
            explained(inner, sample, f"{pointer}/{number}")


@pytest.mark.parametrize("place", [*places(WHOLE)], ids="/".join)
def test_any_value_anywhere(place: tuple[str, ...]) -> None:
    for wrong in WRONG:
        shown = Shown()
        shown.feed(spoiled(WHOLE, place, wrong), full=True)
        shown.feed({"host": {"load1": 2}}, full=False)
        assert shown.feed(WHOLE, full=True) is not None
        shown.feed(spoiled({}, place, wrong), full=False)
        shown.check()


@pytest.mark.parametrize("key", ["seq", "time", "mono", "full", "missed", "doc"])
def test_any_value_around_the_document(key: str) -> None:
    for wrong in WRONG:
        shown = Shown()
        shown.feed(WHOLE, full=True)
        shown.feed({}, **{"full": False, key: wrong})  # type: ignore[arg-type]
        shown.check()


def test_any_name_of_a_model_that_a_real_server_may_have() -> None:
    server = captured()
    for name in (EVIL, "x" * 600, "[/]", "", "/", "~1", "-"):
        models = {name if old == "echo" else old: versions for old, versions in server["models"].items()}
        shown = Shown()
        shown.feed({"servers": {name: {**server, "models": models}}}, full=True)
        shown.feed(
            {"servers": {name: {"models": {name: {"1": {"reason": EVIL}, EVIL: {"state": EVIL}}}}}}, full=False
        )
        shown.check()


def test_figures_that_cannot_be_together_are_no_nonsense_on_the_screen() -> None:
    shown = Shown()
    host = {"memory": {"total": 1 << 30, "available": 1 << 40}, "disk": {"total": 5, "free": 10}}
    gpu = {"index": 0, "memory_total": 5, "memory_used": 500}
    sample = shown.feed({"host": host, "gpus": {"g": gpu}}, full=True)
    assert sample is not None
    assert (sample.host.memory_available, sample.host.disk_free) == (None, None)
    assert "cannot be right" in sample.unavailable["/host/memory_available"]
    assert "cannot be right" in sample.unavailable["/host/disk_free"]


@pytest.mark.parametrize(
    "content",
    [
        'droplets: {"\\e]0;owned\\a\\u202e": {}}',
        'droplets: {a: {host: "\\e[31m h"}}',
        'droplets: {a: {group: "\\u202ex", tags: ["\\e[2J"]}}',
        'droplets: {a: {user: "\\u0000\\x9b2J"}}',
        '"\\e[31mkey\\u2066": 1',
        "droplets: {a: {servers: [{name: '[red]\u202e[/]'}]}}",
        "droplets: {" + "x" * 1_000_000 + ": {}}",
        "a: " * 20_000,
        "[" * 20_000,
        "&a [*a, *a]",
        'droplets: {a: {jump: "u\u202e\x85@h"}}',
        'droplets: {a: {identity: ["~/\u2066key"]}}',
    ],
)
def test_hostile_settings_are_refused_without_a_raw_character(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SettingsError):
        parse(content, "config.yaml")
    assert main.main(["droplets", "--config", settings_file(tmp_path, content)]) == 2
    said = capsys.readouterr()
    assert RAW.search(said.out + said.err) is None
    assert len(said.err) < 20_000
