"""Every None has its reason, every text is printable, whatever came over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.domain.telemetry.builder import SampleBuilder
from console.domain.telemetry.encode import encode
from console.domain.telemetry.sample import EXPLAIN_THEMSELVES, Sample
from tests.unit.telemetry_fake import CONFIG, FakeDroplet, FakeModel, Watched, watch

FULL_GPU: dict[str, Any] = {
    "index": 0,
    "name": "NVIDIA L40S",
    "state": "ok",
    "holders": [{"pid": 1, "process": "tritonserver"}],
}


def nulls(value: object, pointer: str = "") -> Iterator[str]:
    """The JSON Pointers of every null that has to be explained."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if inner is None and key not in EXPLAIN_THEMSELVES:
                yield f"{pointer}/{key}"
            yield from nulls(inner, f"{pointer}/{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from nulls(inner, f"{pointer}/{number}")


def at(document: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def assert_explained(sample: Sample) -> dict[str, Any]:
    document = encode(sample)
    reasons = document.pop("unavailable")
    missing = [pointer for pointer in nulls(document) if not reasons.get(pointer)]
    assert missing == []
    for pointer in reasons:
        value = at(document, pointer)
        assert value is None or isinstance(value, (list, dict)), f"{pointer} is there and says it is not"
    return {**document, "unavailable": reasons}


def everything() -> Watched:
    models = {
        "echo": FakeModel(),
        "ensemble": FakeModel({**CONFIG, "scheduling": "ensemble"}),
        "decoupled": FakeModel({**CONFIG, "decoupled": True}),
        "llm": FakeModel({**CONFIG, "in_flight_batching": True}),
        "nothing known": FakeModel({}),
        "unloaded": FakeModel(state="UNAVAILABLE", more={"reason": "unloaded"}),
        "restricted": FakeModel(more=dict.fromkeys(FakeModel().statistics)),
    }
    gpus = {"GPU-a": FULL_GPU, "GPU-b": {"index": 1, "state": "lost"}, "MIG-c": {"index": 0, "parent": "GPU-a"}}
    return Watched(FakeDroplet(models=models, gpus=gpus, host={"cpu": {"cores": 4}}))


def test_every_none_of_a_life_has_its_reason() -> None:
    watched = everything()
    for step in range(8):
        assert_explained(watched.tick(seconds=0.01 if step == 4 else 1.0))
        for name, model in watched.droplet.models.items():
            if step == 3 and name != "echo":
                model.reload()
            if model.state == "READY" and step != 5:
                model.execute(1, 1)
                model.execute_failing(1)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"servers": {"t": {}}},
        {"servers": {"t": {"state": "dead", "models": {}}}},
        {"servers": {"t": {"models": {"m": {}, "n": {"1": {}}}}}},
        {"gpus": {"x": {}}, "unavailable": {"": "nothing works"}},
        {"gpus": {"x": {"holders": [{"pid": 1}]}}},
        {"host": {}, "driver": {}},
        {"unavailable": {"/host": "denied", "/servers": "denied", "/driver": "no driver", "/gpus": "none"}},
    ],
)
def test_every_none_of_an_empty_document_has_its_reason(document: dict[str, Any]) -> None:
    builder = SampleBuilder("lab")
    for seq in (0, 1):
        line = {"seq": seq, "time": 5.0 + seq, "mono": 1.0 + seq, "full": True, "doc": document}
        sample = builder.feed(line, arrived=0.0, stream="s")
        assert sample is not None
        assert_explained(sample)


def test_the_droplet_s_reason_outranks_ours_for_what_it_did_not_send() -> None:
    watched = watch()
    place = "/servers/triton/models/echo/1"
    watched.droplet.unavailable.update(
        {f"{place}/p95_us": "summaries are off", "/servers/triton/grpc": "gRPC is off"}
    )
    sample = watched.tick()
    assert sample.unavailable["/servers/0/models/0/p95_ms"] == "summaries are off"
    assert sample.unavailable["/servers/0/grpc"] == "gRPC is off"


def test_a_reason_for_a_whole_branch_speaks_for_what_is_below() -> None:
    watched = watch()
    watched.droplet.unavailable["/servers/triton"] = "access is restricted (403)"
    sample = watched.tick()
    assert sample.unavailable["/servers/0/models/0/p95_ms"] == "access is restricted (403)"


def test_what_is_left_out_of_a_list_is_no_reason_for_what_is_in_it() -> None:
    watched = Watched(FakeDroplet(gpus={"GPU-a": FULL_GPU}, unavailable={"/gpus": "3 more GPUs are left out"}))
    sample = watched.tick()
    assert sample.unavailable["/gpus"] == "3 more GPUs are left out"
    assert sample.unavailable["/gpus/0/power_w"] == "the droplet did not say"


def test_names_of_series_are_printable_and_go_away_again() -> None:
    name = 'evil\x1b[2J{a="\u202e"}'
    watched = watch()
    watched.droplet.server["series"] = {name: 1.5, "good": 2}
    assert watched.tick().servers[0].series == {'evil\\x1b[2J{a="\\u202e"}': 1.5, "good": 2}
    watched.droplet.server["series"] = {"good": 2}
    assert watched.tick().servers[0].series == {"good": 2}


def test_the_json_has_its_schema_first_and_lists_for_what_is_many() -> None:
    model = FakeModel()
    watched = watch(echo=model)
    model.execute(*[1] * 8)
    document = assert_explained(watched.tick())
    assert list(document)[:3] == ["schema", "droplet", "time"]
    assert document["schema"] == "sample/1"
    echo = document["servers"][0]["models"][0]
    assert (echo["name"], echo["version"], echo["hit_rate"], echo["batches"]) == ("echo", "1", 87.5, {"8": 1})
    assert echo["average"]["hit_rate"] == 87.5
    assert document["gpus"] == []
    assert json.loads(json.dumps(document, allow_nan=False)) == document


HOSTILE = st.one_of(
    st.text(st.characters(exclude_categories=[]), max_size=20),
    st.sampled_from(
        ["\x1b]0;x\x07", "\u202e", "\ud800", "[bold red]x[/]", "\x00", "a/b~c", "x" * 2000, "-1", "1e5"]
    ),
)
VALUE = st.one_of(
    st.integers(-5, 100),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    HOSTILE,
    st.lists(st.integers(0, 9), max_size=3),
)
FIELDS = (
    "state reason success fail executions inferences cache_hit success_ns queue_ns compute_infer_ns batches "
    "failures responses metrics_success metrics_executions pending p95_us series max_batch_size scheduling "
    "decoupled in_flight_batching last_inference_ms"
)
INNER = st.dictionaries(
    HOSTILE
    | st.sampled_from(["1", "8", "BACKEND", "count", "first_count", "first_ns", "vllm:num_requests_running"]),
    VALUE | st.lists(st.integers(0, 99), min_size=2, max_size=2),
    max_size=4,
)
MODELS = st.dictionaries(st.sampled_from(FIELDS.split()), VALUE | INNER, max_size=12)
READY = st.dictionaries(st.sampled_from(FIELDS.split()[2:]), st.integers(0, 50) | INNER, max_size=20)
SERVERS = st.fixed_dictionaries(
    {},
    optional={
        "state": HOSTILE | st.just("ready"),
        "pid": VALUE,
        "models": st.dictionaries(
            HOSTILE, st.dictionaries(HOSTILE | st.just("1"), MODELS | READY, max_size=2), max_size=2
        ),
        "metrics": VALUE,
        "series": INNER,
    },
)
GPU_FIELDS = (
    "index name state reason mig parent utilization dram_percent max_memory_clock_mhz bus_width_bits holders"
)
WHOLE = st.fixed_dictionaries(
    {},
    optional={
        "host": st.dictionaries(st.sampled_from(["hostname", "cpu", "io", "load1"]), VALUE | INNER, max_size=4),
        "gpus": st.dictionaries(HOSTILE, st.dictionaries(st.sampled_from(GPU_FIELDS.split()), VALUE), max_size=2),
        "servers": st.dictionaries(HOSTILE, SERVERS, max_size=2) | VALUE,
        "unavailable": st.dictionaries(HOSTILE, HOSTILE, max_size=3) | VALUE,
    },
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(-1, 5), WHOLE), min_size=1, max_size=4))
def test_no_document_whatever_crashes_lies_unexplained_or_reaches_the_terminal_raw(
    lines: list[tuple[bool, float, dict[str, Any]]],
) -> None:
    builder = SampleBuilder("lab")
    mono = 10.0
    for seq, (full, seconds, document) in enumerate(lines):
        mono += seconds
        line = {"seq": seq, "time": 1.0, "mono": mono, "full": full or seq == 0, "doc": document}
        sample = builder.feed(line, arrived=2.0, stream="s")
        assert sample is not None, builder.problem
        encoded = assert_explained(sample)
        json.dumps(encoded, allow_nan=False)
        for text in texts(encoded):
            assert text.isprintable(), ascii(text)
            text.encode("utf-8")
