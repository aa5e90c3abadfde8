from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.telemetry import shape
from console.domain.telemetry.merge import Merge, weight
from console.domain.telemetry.wire import MAX_LINE, Assembler, LineError, parse
from tests.unit.telemetry_fake import difference


def line(seq: int, doc: object, *, full: bool = False, **more: object) -> dict[str, object]:
    return {"seq": seq, "time": 1.7e9 + seq, "mono": 100.0 + seq, "full": full, "doc": doc, **more}


def host(**fields: object) -> dict[str, object]:
    return {"host": fields}


def test_a_patch_changes_what_it_names_and_removes_what_it_nulls() -> None:
    lines = Assembler()
    first = lines.add(line(0, host(hostname="a", load1=1.0, cpu={"cores": 4, "user": 1}), full=True))
    second = lines.add(line(1, host(load1=None, cpu={"user": 2})))
    assert first is not None
    assert second is not None
    assert second.doc == host(hostname="a", cpu={"cores": 4, "user": 2})
    assert first.doc == host(hostname="a", load1=1.0, cpu={"cores": 4, "user": 1}), "a tick stays what it was"


def test_a_branch_that_no_patch_touches_is_the_same_object() -> None:
    lines = Assembler()
    first = lines.add(line(0, {"gpus": {"g": {"index": 0}}, **host(load1=1)}, full=True))
    second = lines.add(line(1, host(load1=2)))
    assert first is not None
    assert second is not None
    assert second.doc["gpus"] is first.doc["gpus"]


def test_a_whole_document_replaces_everything() -> None:
    lines = Assembler()
    lines.add(line(0, host(hostname="a", load1=1.0), full=True))
    tick = lines.add(line(1, host(hostname="b"), full=True))
    assert tick is not None
    assert tick.doc == host(hostname="b")


def test_a_stream_that_is_joined_late_waits_for_a_whole_document() -> None:
    lines = Assembler()
    assert lines.add(line(7, host(load1=1))) is None
    assert lines.problem == "the lines before 7 are lost"
    tick = lines.add(line(8, host(load1=2), full=True))
    assert tick is not None
    assert not tick.lost, "nothing was lost that had been there before"
    assert lines.problem is None


def test_after_a_hole_nothing_counts_until_the_next_whole_document() -> None:
    lines = Assembler()
    lines.add(line(0, host(load1=0), full=True))
    assert lines.add(line(2, host(load1=2), missed=1)) is None
    assert lines.add(line(3, host(load1=3))) is None
    tick = lines.add(line(4, host(load1=4), full=True))
    assert tick is not None
    assert tick.lost
    assert tick.missed == 4, "1, 2 and 3 were lost to us, and one the droplet could not take"


def test_a_hole_that_ends_with_a_whole_document_is_still_a_loss() -> None:
    lines = Assembler()
    lines.add(line(0, host(load1=0), full=True))
    tick = lines.add(line(3, host(load1=3), full=True))
    assert tick is not None
    assert (tick.lost, tick.missed) == (True, 2)


def test_duplicates_and_stragglers_are_ignored() -> None:
    lines = Assembler()
    lines.add(line(0, host(load1=0), full=True))
    lines.add(line(1, host(load1=1)))
    assert lines.add(line(1, host(load1=9))) is None
    assert lines.add(line(0, host(load1=9), full=True)) is None
    assert lines.problem is None
    tick = lines.add(line(2, host(hostname="a")))
    assert tick is not None
    assert tick.doc["host"]["load1"] == 1


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"seq": "1"},
        {"seq": -1},
        {"seq": True},
        {"seq": 1.5},
        line(1, None),
        line(1, [1]),
        line(1, "text"),
        line(1, {}, missed=-3),
        line(1, {}, missed="many"),
        {**line(1, {}), "full": 1},
        {**line(1, {}), "time": None},
        {**line(1, {}), "mono": float("nan")},
        {**line(1, {}), "mono": float("inf")},
        {**line(1, {}), "mono": -1.0},
        {"error": "internal", "message": "boom", "where": "gpu.py:1"},
    ],
)
def test_a_line_that_cannot_be_used_is_told_and_the_next_whole_document_heals(bad: dict[str, object]) -> None:
    lines = Assembler()
    lines.add(line(0, host(load1=0), full=True))
    assert lines.add(bad) is None
    assert lines.problem
    assert lines.add(line(2, host(load1=2))) is None
    assert lines.unusable == 2
    assert lines.add(line(3, host(load1=3), full=True)) is not None


def test_a_value_of_the_wrong_type_is_left_out_with_its_reason_until_a_right_one_comes() -> None:
    lines = Assembler()
    tick = lines.add(line(0, host(load1="high", hostname=7, cpu=[1], memory={"total": -5}), full=True))
    assert tick is not None
    assert tick.doc == host(memory={})
    assert tick.reasons["/host/load1"] == "the droplet sent text where a number belongs"
    assert tick.reasons["/host/cpu"] == "the droplet sent something else where an object belongs"
    assert set(tick.reasons) == {"/host/load1", "/host/hostname", "/host/cpu", "/host/memory/total"}
    tick = lines.add(line(1, host(load1=1.5, hostname=None)))
    assert tick is not None
    assert set(tick.reasons) == {"/host/cpu", "/host/memory/total"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, 1e30, 10**4000, True, "1", [1], {"a": 1}])
def test_no_number_that_is_none_gets_in(value: object) -> None:
    tick = Assembler().add(line(0, host(load1=value), full=True))
    assert tick is not None
    assert "load1" not in tick.doc["host"]
    assert "/host/load1" in tick.reasons


@pytest.mark.parametrize("value", [10**4000, -(10**4000), float("-inf"), float("nan")])
def test_no_temperature_that_is_none_gets_in(value: object) -> None:
    tick = Assembler().add(line(0, {"gpus": {"g": {"temperature": value, "utilization": value}}}, full=True))
    assert tick is not None
    assert tick.doc["gpus"] == {"g": {}}


@pytest.mark.parametrize(
    ("value", "kept"), [(0, 0), (2**64 - 1, 2**64 - 1), (12.0, 12), (2**64, None), (0.5, None)]
)
def test_a_count_is_a_whole_number_of_64_bits(value: object, kept: int | None) -> None:
    tick = Assembler().add(line(0, host(io={"read": value}), full=True))
    assert tick is not None
    assert tick.doc["host"]["io"].get("read") == kept


def test_what_nobody_reads_is_not_kept() -> None:
    tick = Assembler().add(line(0, {"surprise": {"deep": [1] * 1000}, "host": {"new": 1, "load1": 1}}, full=True))
    assert tick is not None
    assert tick.doc == host(load1=1)


def test_no_more_gpus_servers_or_series_are_kept_than_the_wire_allows() -> None:
    gpus = {f"GPU-{number}": {"index": number} for number in range(100)}
    series = {f"s{number}": number for number in range(5000)}
    servers = {f"t{number}": {"state": "ready", "series": series if number == 0 else {}} for number in range(40)}
    tick = Assembler().add(line(0, {"gpus": gpus, "servers": servers}, full=True))
    assert tick is not None
    assert len(tick.doc["gpus"]) == shape.MAX_GPUS
    assert len(tick.doc["servers"]) == shape.MAX_SERVERS
    assert len(tick.doc["servers"]["t0"]["series"]) == shape.MAX_SERIES
    assert tick.reasons["/gpus"] == "more than 64 GPUs and MIG devices: the rest is left out"
    assert "/servers/t0/series" in tick.reasons


def test_patches_that_pile_up_names_end_at_the_limit() -> None:
    lines = Assembler()
    lines.add(line(0, {"servers": {"t": {"state": "ready"}}}, full=True))
    for seq in range(1, 40):
        series = {f"name {seq} {number}": 1 for number in range(500)}
        lines.add(line(seq, {"servers": {"t": {"series": series}}}))
    tick = lines.add(line(40, {}))
    assert tick is not None
    assert len(tick.doc["servers"]["t"]["series"]) == shape.MAX_SERIES


def test_what_comes_finds_the_room_of_what_goes() -> None:
    lines = Assembler()
    old = {f"old {number}": 1 for number in range(shape.MAX_SERIES)}
    new = {f"new {number}": 1 for number in range(shape.MAX_SERIES)}
    lines.add(line(0, {"servers": {"t": {"series": old}}}, full=True))
    tick = lines.add(line(1, {"servers": {"t": {"series": {**new, **dict.fromkeys(old)}}}}))
    assert tick is not None
    assert tick.doc["servers"]["t"]["series"] == new
    assert tick.reasons == {}


def test_a_document_that_grows_beyond_all_measure_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.domain.telemetry.wire.MAX_WEIGHT", 2_000)
    lines = Assembler()
    lines.add(line(0, {}, full=True))
    for seq in range(1, 30):
        models = {f"m{seq}-{number}": {"1": {"success": 1, "state": "READY"}} for number in range(100)}
        if lines.add(line(seq, {"servers": {"t": {"models": models}}})) is None:
            break
    assert lines.problem is not None
    assert "grew beyond 2000 values" in lines.problem
    assert lines.add(line(100, {}, full=True)) is not None


def test_a_stream_that_takes_away_as_much_as_it_brings_never_reaches_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("console.domain.telemetry.wire.MAX_WEIGHT", 1_000)
    lines = Assembler()
    lines.add(line(0, {}, full=True))
    names: dict[str, object] = {}
    for seq in range(1, 100):
        patch: dict[str, object] = {**dict.fromkeys(names, None), **{f"{seq}-{number}": 1 for number in range(100)}}
        assert lines.add(line(seq, {"servers": {"t": {"series": patch}}})) is not None, lines.problem
        names = {name: 1 for name, value in patch.items() if value}


def test_a_peer_that_sends_ever_more_does_not_fill_the_memory() -> None:
    lines = Assembler()
    refused = 0
    tracemalloc.start()
    try:
        for seq in range(80):
            state = "y" * 5000 if seq % 2 else ""
            branch = {"1": {"state": state, "reason": state}}
            models = {f"{seq // 2}-{number}" + "x" * 400: branch for number in range(500)}
            document = {"servers": {f"t{seq // 2 % 32}": {"models": models}}}
            refused += lines.add(line(seq, document, full=seq == 0 or lines.problem is not None)) is None
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused, "the limit was reached"
    assert kept < 80 * 2**20, f"{kept / 2**20:.0f} MiB"


def test_names_of_models_with_slashes_have_pointers() -> None:
    document = {"servers": {"a/b~c": {"models": {"m": {"1": {"success": "x"}}}}}}
    tick = Assembler().add(line(0, document, full=True))
    assert tick is not None
    assert list(tick.reasons) == ["/servers/a~1b~0c/models/m/1/success"]


def test_texts_are_cut_and_made_printable() -> None:
    tick = Assembler().add(line(0, host(hostname="\x1b[2J" + "x" * 10_000), full=True))
    assert tick is not None
    assert tick.doc["host"]["hostname"].startswith("\\x1b[2J")
    assert len(tick.doc["host"]["hostname"]) < 600


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"seq": 1, "doc": {"ho',
        b"\xff\xfe",
        b"[1]",
        b"null",
        b'{"mono": NaN}',
        b'{"mono": Infinity}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"seq": ' + b"9" * 10_000 + b"}",
        b" " * (MAX_LINE + 1),
    ],
)
def test_raw_lines_that_are_no_json_object_say_so(raw: bytes) -> None:
    with pytest.raises(LineError):
        parse(raw)


def test_a_raw_line_becomes_its_object() -> None:
    assert parse(b'{"seq": 0, "doc": {"a": "\\ud800"}}') == {"seq": 0, "doc": {"a": "\ud800"}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=8,
)
KNOWN = st.sampled_from(
    ["host", "cpu", "user", "gpus", "index", "holders", "servers", "models", "1", "batches", "8", "series", "state"]
)
DEEP = st.recursive(
    JSON, lambda inner: st.dictionaries(KNOWN | st.text(max_size=5), inner, max_size=4), max_leaves=12
)


LINES = st.fixed_dictionaries({}, optional={"seq": JSON, "full": JSON, "doc": DEEP, "mono": JSON, "missed": JSON})


@given(st.lists(LINES, max_size=3))
def test_no_line_whatever_raises(lines: list[dict[str, Any]]) -> None:
    assembler = Assembler()
    for one in lines:
        assembler.add(one)


@given(st.lists(DEEP, min_size=1, max_size=6))
def test_no_document_whatever_raises_or_is_kept_as_it_came(documents: list[Any]) -> None:
    assembler = Assembler()
    for seq, document in enumerate(documents):
        tick = assembler.add(line(seq, document, full=seq == 0))
        if tick is not None:
            assert tick.doc.keys() <= {"host", "driver", "gpus", "servers", "unavailable"}


VALUES = st.integers(0, 99) | st.floats(0, 99)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "host": st.fixed_dictionaries(
            {},
            optional={
                "load1": VALUES,
                "hostname": st.text("abc", max_size=3),
                "cpu": st.fixed_dictionaries({}, optional={"user": VALUES, "idle": VALUES}),
            },
        ),
        "servers": st.dictionaries(
            st.sampled_from(["a", "b"]),
            st.fixed_dictionaries(
                {},
                optional={"pid": st.integers(0, 9), "series": st.dictionaries(st.text("xy", max_size=2), VALUES)},
            ),
        ),
    },
)


@given(st.lists(DOCUMENTS, min_size=2, max_size=6))
def test_patches_bring_over_exactly_the_document_they_were_made_from(documents: list[dict[str, Any]]) -> None:
    lines = Assembler()
    tick = lines.add(line(0, documents[0], full=True))
    for seq in range(1, len(documents)):
        tick = lines.add(line(seq, difference(documents[seq - 1], documents[seq])))
        assert tick is not None
        assert tick.doc == documents[seq]


@given(DOCUMENTS)
def test_growth_counts_every_value_that_came(document: dict[str, Any]) -> None:
    merge = Merge({})
    merged = merge.document({}, document)
    assert merge.grown >= weight(merged) - 1
