from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from remote_scripts import telemetry
from remote_scripts.call import MAX_LINE, Call
from remote_scripts.patch import merge
from remote_scripts.telemetry import Stream
from remote_scripts.trim import LEVELS, trim
from tests.remote_scripts.fake_droplet import FakeDroplet

Change = Callable[[dict[str, Any]], None]


class Recorded:
    """Takes lines, puts them together, and says stop after some."""

    def __init__(self, stop_after: int = 1 << 30) -> None:
        self.lines: list[dict[str, Any]] = []
        self.documents: list[dict[str, Any]] = []
        self.sizes: list[int] = []
        self._stop_after = stop_after

    def write(self, data: bytes) -> None:
        line = json.loads(data)
        before = self.documents[-1] if self.documents else {}
        self.lines.append(line)
        self.sizes.append(len(data))
        self.documents.append(line["doc"] if line["full"] else merge(before, line["doc"]))

    def flush(self) -> None:
        if len(self.lines) >= self._stop_after:
            raise BrokenPipeError


def run(droplet: FakeDroplet, ticks: int, **request: Any) -> Recorded:
    recorded = Recorded(ticks)
    telemetry.main(Call({"interval": 0.1, **request}, recorded, droplet.root, [str(droplet.root / "bin")]))
    return recorded


def stream(droplet: FakeDroplet, recorded: Recorded, take: Change, full_every: int = 30) -> Stream:
    """A stream whose document a test makes."""
    found = Stream(Call({}, recorded, droplet.root, []), full_every=full_every, slow_every=10)

    def make(mono: float) -> dict[str, Any]:
        document: dict[str, Any] = {"servers": {}}
        take(document)
        return document

    found._take = make  # type: ignore[method-assign]
    return found


def test_lines_are_numbered_and_full_now_and_then(droplet: FakeDroplet) -> None:
    recorded = run(droplet, 7, full_every=3)
    assert [line["seq"] for line in recorded.lines] == list(range(7))
    assert [line["full"] for line in recorded.lines] == [True, False, False, True, False, False, True]
    monos = [line["mono"] for line in recorded.lines]
    assert monos == sorted(monos)
    assert abs(recorded.lines[0]["time"] - time.time()) < 60


def test_the_first_line_has_every_branch(droplet: FakeDroplet) -> None:
    recorded = run(droplet, 1)
    assert {"host", "servers"} <= recorded.documents[0].keys()


def test_a_mistake_about_triton_leaves_the_rest(droplet: FakeDroplet, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("remote_scripts.triton.collector.TritonCollector.look", fail)
    (document,) = run(droplet, 1).documents
    assert "KeyError" in document["unavailable"]["/servers"]
    assert "host" in document


def test_what_did_not_change_does_not_travel(droplet: FakeDroplet) -> None:
    recorded = Recorded()
    found = stream(droplet, recorded, lambda document: document.update(a={"b": 1, "c": 2}))
    for _ in range(3):
        found.tick()
    assert [line["doc"] for line in recorded.lines[1:]] == [{}, {}]
    assert recorded.documents[-1] == {"servers": {}, "a": {"b": 1, "c": 2}}


def test_missed_ticks_are_told_with_the_next_line(droplet: FakeDroplet) -> None:
    recorded = Recorded()
    found = stream(droplet, recorded, lambda document: None)
    found.tick()
    found.miss(2)
    found.miss(1)
    found.tick()
    found.tick()
    assert [line.get("missed") for line in recorded.lines] == [None, 3, None]
    assert [line["seq"] for line in recorded.lines] == [0, 1, 2]


def test_no_null_travels_but_in_a_patch_for_what_went(droplet: FakeDroplet) -> None:
    recorded = Recorded()
    turns = iter([{"x": 1}, {}])
    found = stream(droplet, recorded, lambda document: document.update(next(turns)))
    found.tick()
    found.tick()
    assert recorded.lines[1]["doc"] == {"x": None}
    assert recorded.documents[1] == {"servers": {}}


class Pipe:
    """A sink before a real pipe."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def fileno(self) -> int:
        return self.writer

    def write(self, data: bytes) -> None:
        os.write(self.writer, data)

    def flush(self) -> None:
        return


def test_a_line_that_nobody_takes_costs_ticks_and_is_not_queued(droplet: FakeDroplet) -> None:
    pipe = Pipe()
    try:
        found = Stream(Call({}, pipe, droplet.root, []), full_every=30, slow_every=10)
        assert found.writable()
        os.set_blocking(pipe.writer, False)
        while found.writable():
            os.write(pipe.writer, b"x" * 4096)
        assert not found.writable()
        os.read(pipe.reader, 1 << 20)
        assert found.writable()
    finally:
        os.close(pipe.reader)
        os.close(pipe.writer)


def test_the_loop_counts_what_a_slow_reader_costs(droplet: FakeDroplet) -> None:
    pipe = Pipe()
    fcntl.fcntl(pipe.writer, fcntl.F_SETPIPE_SZ, 4096)  # room for one line
    call = Call({"interval": 0.1, "full_every": 1}, pipe, droplet.root, [])
    thread = threading.Thread(target=telemetry.main, args=(call,), daemon=True)
    thread.start()
    with os.fdopen(pipe.reader, "rb", buffering=0) as reader:
        lines = []
        for _ in range(4):
            time.sleep(0.5)
            lines.append(json.loads(reader.readline()))
    thread.join(10)
    assert not thread.is_alive()
    os.close(pipe.writer)
    assert [line["seq"] for line in lines] == [0, 1, 2, 3]
    assert sum(line.get("missed", 0) for line in lines) > 0
    span = lines[-1]["mono"] - lines[0]["mono"]
    due = len(lines) - 1 + sum(line.get("missed", 0) for line in lines)
    assert due == pytest.approx(span / 0.1, abs=2)


@pytest.mark.parametrize(
    "request_",
    [
        {"interval": "x", "full_every": None, "slow_every": [], "servers": 7, "gpm": "no"},
        {"interval": float("nan")},
        {"interval": -1, "full_every": 0, "slow_every": -5, "servers": [1, {}, {"http": True}]},
        {"interval": True},
    ],
)
def test_a_request_with_wrong_types_runs_with_the_defaults(droplet: FakeDroplet, request_: dict[str, Any]) -> None:
    recorded = Recorded(1)
    telemetry.main(Call(request_, recorded, droplet.root, []))
    assert len(recorded.lines) == 1


def big(document: dict[str, Any]) -> None:
    models = {
        f"{number}{'m' * 200}": {
            "1": {
                "state": "READY",
                "reason": "r" * 500,
                "series": {f"s{n}{'x' * 400}": n for n in range(10)},
                "batches": {str(n): [n, n] for n in range(1, 11)},
            }
        }
        for number in range(2000)
    }
    document["servers"]["triton"] = {"state": "ready", "models": models, "series": {"a": 1}}
    document["unavailable"] = {f"/servers/triton/models/{name}/1/p95_us": "r" * 500 for name in models}


def test_a_document_that_does_not_fit_is_made_smaller_with_the_reason(droplet: FakeDroplet) -> None:
    recorded = Recorded()
    found = stream(droplet, recorded, big, full_every=2)
    for _ in range(3):
        found.tick()
    assert max(recorded.sizes) <= MAX_LINE
    assert recorded.sizes[1] < 1000
    for document in recorded.documents:
        assert document["unavailable"]["/servers/triton/series"]
        assert "series" not in document["servers"]["triton"]
        assert document["servers"]["triton"]["state"] == "ready"
    assert len(recorded.documents[0]["servers"]["triton"]["models"]) == 2000


def test_at_the_last_level_the_models_go() -> None:
    document: dict[str, Any] = {"servers": {}}
    big(document)
    trim(document, LEVELS)
    assert "models" not in document["servers"]["triton"]
    assert document["unavailable"]["/servers/triton/models"]
    assert len(json.dumps(document)) < 10_000
