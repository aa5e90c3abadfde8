from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remote_scripts.triton.stats import NO_VERSION, NS_STEP, IndexEntry, read_index, read_statistics
from tests.remote_scripts.replayed_triton import DATA

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def stats(**model: Any) -> bytes:
    return json.dumps({"model_stats": [{"name": "m", "version": "1", **model}]}).encode()


def captured(folder: str, name: str) -> Any:
    entries = json.loads((DATA / folder / "stats.json").read_bytes())["model_stats"]
    return next(entry for entry in entries if entry["name"] == name)


def test_a_real_server_under_load() -> None:
    found = read_statistics((DATA / "batched/stats.json").read_bytes())
    raw = captured("batched", "echo")
    assert found.skipped == 0
    echo = found.models["echo", "1"]
    assert (echo["success"], echo["fail"]) == (raw["inference_stats"]["success"]["count"], 0)
    assert (echo["executions"], echo["inferences"]) == (raw["execution_count"], raw["inference_count"])
    assert {int(size): count for size, (count, _) in echo["batches"].items()} == {
        batch["batch_size"]: batch["compute_infer"]["count"] for batch in raw["batch_stats"]
    }
    assert sum(count for count, _ in echo["batches"].values()) == echo["executions"] > 0
    assert sum(int(size) * count for size, (count, _) in echo["batches"].items()) == echo["inferences"]
    assert echo["last_inference_ms"] == raw["last_inference"]
    assert "responses" not in echo


def test_a_real_server_without_traffic() -> None:
    echo = read_statistics((DATA / "idle/stats.json").read_bytes()).models["echo", "1"]
    assert echo["success"] == 0
    assert "batches" not in echo
    assert "last_inference_ms" not in echo


def test_failures_and_cache_hits_of_a_real_server() -> None:
    impatient = read_statistics((DATA / "failures/stats.json").read_bytes()).models["impatient", "1"]
    raw = captured("failures", "impatient")
    assert (impatient["success"], impatient["fail"]) == (
        raw["inference_stats"]["success"]["count"],
        raw["inference_stats"]["fail"]["count"],
    )
    assert impatient["fail"] > 0
    cached = read_statistics((DATA / "cache/stats.json").read_bytes()).models["cached", "1"]
    assert cached["cache_hit"] > 0
    assert cached["success"] == cached["cache_hit"] + cached["cache_miss"]


def test_durations_never_go_back_by_rounding() -> None:
    before = 0
    for nanoseconds in range(0, 5 * NS_STEP, 777):
        model = read_statistics(stats(inference_stats={"queue": {"count": 1, "ns": nanoseconds}})).models["m", "1"]
        assert before <= model["queue_ns"] <= nanoseconds
        assert nanoseconds - model["queue_ns"] < NS_STEP
        before = model["queue_ns"]


def test_responses_are_summed_and_the_first_told_apart() -> None:
    # As in server/docs/protocol/extension_statistics.md: three responses to each of 10 requests, the last empty.
    def response(count: int, ns: int, **other: int) -> dict[str, Any]:
        infer = {"count": count, "ns": ns * count}
        parts = {"compute_infer": infer, "compute_output": {"count": 10, "ns": 20_000}}
        return parts | {name: {"count": number, "ns": 0} for name, number in other.items()}

    body = stats(
        response_stats={
            "0": response(10, 1_000_000, success=10),
            "1": response(10, 50_000, success=9, fail=1),
            "2": response(10, 10_000, empty_response=10),
        }
    )
    assert read_statistics(body).models["m", "1"]["responses"] == {
        "count": 30,
        "success": 19,
        "fail": 1,
        "empty": 10,
        "compute_infer_ns": 10_600_000,
        "compute_output_ns": 60_000,
        "first_count": 10,
        "first_ns": 10_020_000,
    }


def test_counters_as_text_are_read_too() -> None:
    model = read_statistics(stats(execution_count="12", inference_stats={"success": {"count": "7"}, "fail": {}}))
    assert model.models["m", "1"]["executions"] == 12
    assert model.models["m", "1"]["success"] == 7
    assert "fail" not in model.models["m", "1"]


@pytest.mark.parametrize("value", [-1, 1.5, True, None, [], {}, "x", "1e3", 1 << 64, str(1 << 70), "٣"])
def test_a_counter_that_cannot_be_true_is_left_out(value: object) -> None:
    assert "executions" not in read_statistics(stats(execution_count=value)).models["m", "1"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"model_stats":{}}',
        b'{"error":"x"}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_no_statistics_is_refused_in_words(body: bytes) -> None:
    with pytest.raises(ValueError):
        read_statistics(body)
    with pytest.raises(ValueError):
        read_index(body if body != b"[]" else b"{}")


def test_a_number_of_a_million_digits_costs_no_time() -> None:
    assert read_statistics(b'{"model_stats":[' + b"9" * 1_000_000 + b"]}").skipped == 1


def test_entries_without_a_name_are_counted() -> None:
    found = read_statistics(b'{"model_stats":[1,{"name":"m"},{"version":"1"},{"name":"","version":"1"}]}')
    assert (found.models, found.skipped) == ({}, 4)


def test_a_name_of_a_megabyte_is_cut() -> None:
    body = json.dumps({"model_stats": [{"name": "n" * (1 << 20), "version": "1"}]}).encode()
    ((name, _),) = read_statistics(body).models
    assert len(name) == 512
    assert name.endswith("…")


@given(JSON)
def test_nothing_makes_it_stumble(value: Any) -> None:
    for body in (value, {"model_stats": value}, {"model_stats": [value]}):
        try:
            read_statistics(json.dumps(body).encode())
        except ValueError:
            continue
    wild = {
        "inference_stats": value,
        "batch_stats": [value],
        "response_stats": {"0": value},
        "last_inference": value,
    }
    read_statistics(stats(**wild))


def test_a_real_index() -> None:
    found = read_index((DATA / "unloaded/index.json").read_bytes())
    assert found["echo", "1"] == IndexEntry("READY", None)
    assert found["flaky", "1"] == IndexEntry("UNAVAILABLE", "unloaded")
    reason = found["broken", "1"].reason
    assert reason is not None
    assert reason.startswith("Internal: FileNotFoundError")


def test_a_model_that_never_was_loaded_has_a_name_and_nothing_else() -> None:
    found = read_index((DATA / "batched/index.json").read_bytes())
    assert found["broken", NO_VERSION] == IndexEntry("UNKNOWN", None)
