"""The lab's Triton does what the other tests take for granted: its models, its faults, and the load's counts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab import nvml
from tests.lab.machine import Machine
from tests.lab.nvml import machines
from tests.lab.triton import repository, unit
from tests.lab.triton.api import AnswerError, Api
from tests.lab.triton.load import Result, Target, closed_loop, infer_target, open_loop, stream_target
from tests.lab.triton.options import Options
from tests.lab.triton.unit import TritonUnit

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

LOADED = tuple(name for name in repository.NAMES if name not in ("broken", "slow_start"))
STREAM = {"COUNT": 4, "FIRST_MS": 40, "DELAY_MS": 10}
TENSORRT_LLM = {"input_ids": [1, 2, 3], "input_lengths": 3, "request_output_len": 10, "streaming": True}
VLLM = {"text_input": "the quick brown fox", "sampling_parameters": '{"max_tokens": 10}'}


@pytest.fixture(scope="module")
def droplet() -> Iterator[Machine]:
    with Machine("bookworm") as machine:
        yield machine


@pytest.fixture(scope="module")
def server(droplet: Machine) -> TritonUnit:
    triton = unit.install(droplet, Options(load=LOADED, cache_bytes=1 << 20, exit_timeout_s=20))
    triton.start()
    return triton


@pytest.fixture
def api(server: TritonUnit) -> Api:
    try:
        server.api.wait_ready(3)
    except TimeoutError:
        server.restart()
    return server.api


def target(api: Api, model: str, values: tuple[int, ...] = (0,), batch: int = 1) -> Target:
    return infer_target(api.address, api.http, model, values, batch)


def statistics(api: Api, model: str) -> dict[str, Any]:
    (found,) = api.statistics(model)
    return found


def counts(api: Api, model: str) -> tuple[int, int, int, int]:
    """Successes, failures, executions, inferences."""
    found = statistics(api, model)
    told = found["inference_stats"]
    return told["success"]["count"], told["fail"]["count"], found["execution_count"], found["inference_count"]


def gained(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(new - old for old, new in zip(before, after, strict=True))


def sizes(api: Api, model: str) -> dict[int, int]:
    return {one["batch_size"]: one["compute_infer"]["count"] for one in statistics(api, model)["batch_stats"]}


def metric(text: str, name: str, **labels: str) -> float:
    for line in text.splitlines():
        found = re.fullmatch(rf"{re.escape(name)}{{(.*)}} (\S+)", line)
        if found and all(f'{label}="{value}"' in found[1] for label, value in labels.items()):
            return float(found[2])
    raise AssertionError(f"no {name} with {labels}")


def test_echo_merges_what_arrives_together(api: Api) -> None:
    before, sizes_before = counts(api, "echo"), sizes(api, "echo")
    result = closed_loop(target(api, "echo"), 800, 12)
    successes, failures, executions, inferences = gained(before, counts(api, "echo"))
    assert (result.sent, result.succeeded, dict(result.failed)) == (800, 800, {})
    assert (successes, failures, inferences) == (800, 0, 800)
    assert executions < 400
    now = sizes(api, "echo")
    grown = {size: count - sizes_before.get(size, 0) for size, count in now.items()}
    assert sum(grown.values()) == executions
    assert sum(size * count for size, count in grown.items()) == 800
    assert max(now) == 8


def test_the_clients_batch_counts_as_inferences(api: Api) -> None:
    before = counts(api, "echo")
    closed_loop(target(api, "echo", batch=4), 10, 1)
    assert gained(before, counts(api, "echo")) == (10, 0, 10, 40)


def test_curve_takes_what_its_config_says(api: Api) -> None:
    parameters = api.config("curve")["parameters"]
    base_ms, item_ms = (float(parameters[name]["string_value"]) for name in ("base_ms", "item_ms"))
    for batch in (1, 16):
        before = statistics(api, "curve")["inference_stats"]["compute_infer"]["ns"]
        closed_loop(target(api, "curve", batch=batch), 5, 1)
        spent_ms = (statistics(api, "curve")["inference_stats"]["compute_infer"]["ns"] - before) / 5e6
        assert base_ms + item_ms * batch <= spent_ms < 2 * (base_ms + item_ms * batch)


def test_flaky_raising_is_a_backend_failure_and_an_error_response_a_success(api: Api) -> None:
    before, metrics_before = counts(api, "flaky"), api.metrics()
    raised = closed_loop(target(api, "flaky", (1,)), 20, 4)
    answered = closed_loop(target(api, "flaky", (2,)), 10, 2)
    assert dict(raised.failed) == {"HTTP 500": 20}
    assert dict(answered.failed) == {"HTTP 500": 10}  # the client sees a failure, and
    successes, failures, executions, _ = gained(before, counts(api, "flaky"))
    assert (successes, failures) == (10, 20)  # the server counts a success
    assert executions > 0
    metrics = api.metrics()
    by_reason = {
        reason: metric(metrics, "nv_inference_request_failure", model="flaky", reason=reason)
        - metric(metrics_before, "nv_inference_request_failure", model="flaky", reason=reason)
        for reason in ("BACKEND", "REJECTED", "CANCELED", "OTHER")
    }
    assert by_reason == {"BACKEND": 20, "REJECTED": 0, "CANCELED": 0, "OTHER": 0}


def test_stream_sends_known_responses(api: Api) -> None:
    before = counts(api, "stream")
    result = closed_loop(stream_target(api.address, api.http, "stream", STREAM), 10, 2)
    assert (result.succeeded, result.responses) == (10, 40)
    assert result.latencies_s[0] >= 0.07
    assert gained(before, counts(api, "stream"))[:2] == (10, 0)
    assert statistics(api, "stream")["response_stats"] == {}  # the Python backend of 2.51.0 reports none
    with pytest.raises(AnswerError, match="decoupled"):
        api.infer("stream")


def test_responses_reports_each_response(api: Api) -> None:
    closed_loop(stream_target(api.address, api.http, "responses", STREAM), 10, 2)
    told = statistics(api, "responses")["response_stats"]
    assert {index: one["success"]["count"] for index, one in told.items()} == {"0": 10, "1": 10, "2": 10, "3": 10}
    assert 40e6 <= told["0"]["compute_infer"]["ns"] / 10 < 60e6
    assert 10e6 <= told["3"]["compute_infer"]["ns"] / 10 < 25e6


def test_pipeline_counts_for_itself_and_for_its_steps(api: Api) -> None:
    before = {model: counts(api, model) for model in ("pipeline", "echo", "curve")}
    closed_loop(target(api, "pipeline"), 12, 3)
    for model, then in before.items():
        assert gained(then, counts(api, model))[:2] == (12, 0)


def test_sequence_adds_up(api: Api) -> None:
    totals = []
    for value, start, end in ((4, True, False), (5, False, False), (6, False, True)):
        body = {
            "parameters": {"sequence_id": 7, "sequence_start": start, "sequence_end": end},
            "inputs": [{"name": "INPUT", "datatype": "INT32", "shape": [1, 1], "data": [value]}],
        }
        totals.append(api.post("/v2/models/sequence/infer", body)["outputs"][0]["data"][0])
    assert totals == [4, 9, 15]


def test_cached_answers_without_executing(api: Api) -> None:
    before = counts(api, "cached")
    hits = statistics(api, "cached")["inference_stats"]["cache_hit"]["count"]
    closed_loop(target(api, "cached", (101, 102)), 20, 1)
    assert gained(before, counts(api, "cached")) == (20, 0, 2, 2)
    assert statistics(api, "cached")["inference_stats"]["cache_hit"]["count"] - hits == 18


@pytest.mark.parametrize(
    ("model", "inputs", "metrics"),
    [
        (
            "tensorrt_llm",
            TENSORRT_LLM,
            ('nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"}', 'fraction"'),
        ),
        (
            "vllm_model",
            VLLM,
            ('vllm:num_requests_waiting{model="vllm_model",version="1"}', "vllm:gpu_cache_usage_perc"),
        ),
    ],
)
def test_in_flight_models_publish_their_own_metrics(
    api: Api, model: str, inputs: dict[str, object], metrics: tuple[str, str]
) -> None:
    assert api.config(model)["backend"] in ("tensorrtllm", "vllm")
    before = api.metrics()
    result = closed_loop(stream_target(api.address, api.http, model, inputs), 12, 6)
    assert (result.succeeded, result.responses) == (12, 120)
    after = api.metrics()
    assert f"{metrics[0]} 0\n" in after
    assert metrics[1] in after
    if model == "vllm_model":
        made = [metric(text, "vllm:generation_tokens_total", model=model) for text in (before, after)]
        assert made[1] - made[0] == 120


def test_series_publishes_metrics_of_its_own(api: Api) -> None:
    before = metric(api.metrics(), "lab_requests_total", model="series")
    closed_loop(target(api, "series"), 5, 1)
    text = api.metrics()
    assert metric(text, "lab_requests_total", model="series") == before + 5
    assert [metric(text, "lab_gauge", model="series", number=str(number)) for number in range(3)] == [0, 1, 2]
    (line,) = (line for line in text.split("\n") if line.startswith("lab_hostile{"))
    assert line == 'lab_hostile{text="\x1b[31m[bold]\\"quoted\\" \\\\ back\\nnext{}= ünïcödé"} 1'


def test_a_reload_resets_the_statistics_and_not_the_metrics(api: Api, server: TritonUnit) -> None:
    api.load("echo")  # may load it anew: importing model.py writes 1/__pycache__, and so the folder is newer once
    base = counts(api, "echo")[0]
    closed_loop(target(api, "echo"), 8, 1)
    was = metric(api.metrics(), "nv_inference_request_success", model="echo")
    api.load("echo")
    assert counts(api, "echo")[0] == base + 8  # nothing changed on disk: nothing was loaded
    server.touch("echo")
    api.load("echo")
    assert counts(api, "echo") == (0, 0, 0, 0)
    assert counts(api, "pipeline") == (0, 0, 0, 0)  # the ensemble on top of it was loaded anew as well
    closed_loop(target(api, "echo"), 3, 1)
    assert counts(api, "echo")[0] == 3
    assert metric(api.metrics(), "nv_inference_request_success", model="echo") == was + 3


def test_copies_and_edits_make_more_models(api: Api, server: TritonUnit) -> None:
    names = repository.add_copies(server.models, "echo", 3)
    repository.add_model(
        server.models, "curve", "quick", {'value { string_value: "20" }': 'value { string_value: "1" }'}
    )
    assert names == ["echo_00", "echo_01", "echo_02"]
    for name in (*names, "quick"):
        api.load(name)
        assert api.infer(name, 9)["outputs"][0]["data"] == [9]
        api.unload(name)
    assert api.config("curve")["parameters"]["base_ms"]["string_value"] == "20"
    with pytest.raises(ValueError, match="to edit"):
        repository.add_model(server.models, "echo", "wrong", {"not there": ""})


def test_an_open_loop_keeps_its_rate(api: Api) -> None:
    result = open_loop(target(api, "echo"), rate=100, seconds=2)
    assert (result.sent, result.succeeded, result.skipped) == (200, 200, 0)
    assert result.rps == pytest.approx(100, rel=0.05)


def test_an_open_loop_goes_on_when_the_server_does_not(api: Api) -> None:
    result = open_loop(target(api, "curve", batch=16), rate=100, seconds=1, limit=10)
    assert result.sent + result.skipped == 100
    assert result.skipped > 0


def test_poisson_arrivals_are_the_same_for_the_same_seed(api: Api) -> None:
    first, second, other = (open_loop(target(api, "echo"), 50, 1, seed).sent for seed in (1, 1, 2))
    assert first == second
    assert other != first


def test_a_load_without_a_server_counts_its_failures(api: Api) -> None:
    nowhere = Target(api.address, 8999, "/v2/models/echo/infer", (b"{}",))
    result = closed_loop(nowhere, 5, 2)
    assert (result.sent, result.succeeded, dict(result.failed)) == (5, 0, {"connection": 5})


def test_the_background_load_ends_when_told_to(api: Api) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.lab.triton.background",
        "--address",
        api.address,
        "--port",
        str(api.http),
    ]
    command += ["--calm", "20", "--peak", "50", "--calm-seconds", "0.5", "--peak-seconds", "0.5", "echo", "curve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(4)]
        process.terminate()
        assert process.wait(10) == 0
    assert {line["phase"] for line in lines} == {"calm", "peak"}
    assert {line["model"] for line in lines} == {"echo", "curve"}
    assert all(line["sent"] == line["succeeded"] for line in lines)


def test_a_model_that_lost_its_process_is_not_noticed_and_a_killed_server_comes_back(
    api: Api, server: TritonUnit
) -> None:
    with pytest.raises(AnswerError):
        api.infer("flaky", 3)
    with pytest.raises(AnswerError, match="not healthy"):
        api.infer("flaky", 0)
    assert api.ready()  # 2.51.0 does not notice (server issues 8604, 7230)
    before = server.pid()
    server.kill()
    api.wait_ready(60)
    assert server.pid() not in (0, before)


def test_broken_gives_its_reason_in_the_index_and_the_rest_goes_on(api: Api) -> None:
    with pytest.raises(AnswerError, match=r"weights\.bin"):
        api.load("broken")
    (entry,) = (one for one in api.index() if one["name"] == "broken")
    assert entry["state"] == "UNAVAILABLE"
    assert "no such file: /models/broken/1/weights.bin" in entry["reason"]
    assert api.infer("echo", 5)["outputs"][0]["data"] == [5]
    api.unload("broken")
    assert not api.ready()  # strict readiness holds it against the server until a restart, unloaded or not


def test_a_load_leaves_no_connection_to_delay_a_stop(server: TritonUnit) -> None:
    api = server.api  # not ready, after what came before
    closed_loop(target(api, "echo"), 50, 8)
    server.stop()
    stopped = server.journal().rsplit("Signal (15) received.", 1)[1]
    assert "HTTP service connections" not in stopped
    assert not api.listens()
    server.start()


def test_a_second_server_beside_the_first_and_one_by_hand(droplet: Machine, api: Api) -> None:
    options = Options(
        http=8100, grpc=8101, metrics=None, repository="/models-b", load=("echo",), restricted=("statistics",)
    )
    second = unit.install(droplet, options, "triton-b", ["echo"])
    second.start()
    by_hand = unit.start_by_hand(droplet, Options(http=8200, grpc=8201, metrics=8202, repository="/models-b"))
    by_hand.wait_ready()
    assert second.api.infer("echo", 2)["outputs"][0]["data"] == [2]
    with pytest.raises(AnswerError, match="expecting header 'lab-key'") as refused:
        second.api.statistics()
    assert refused.value.status == 403
    assert second.api.request("GET", "/v2/models/stats", headers={"lab-key": "secret"})[0] == 200
    with pytest.raises(ValueError, match="without metrics"):
        second.api.metrics()
    second.remove()
    assert api.ready()
    droplet.run(["sh", "-c", "kill $(ss -lntpH sport = :8200 | sed 's/.*pid=\\([0-9]*\\).*/\\1/')"])


def test_a_starting_server_listens_on_nothing(droplet: Machine) -> None:
    options = Options(http=8300, grpc=8301, metrics=8302, repository="/models-c", load=("slow_start",))
    slow = unit.install(droplet, options, "triton-c", [])
    repository.add_model(slow.models, "slow_start", edits={'"5"': '"2"'})
    slow.start(wait=False)
    time.sleep(1)
    assert slow.pid() != 0
    assert not slow.api.listens()
    assert not slow.api.listens(metrics=True)
    slow.api.wait_ready()
    slow.remove()


def test_summaries_give_quantiles(droplet: Machine) -> None:
    options = Options(http=8400, grpc=8401, metrics=8402, repository="/models-d", load=("echo",), summaries=True)
    summing = unit.install(droplet, options, "triton-d", ["echo"])
    summing.start()
    closed_loop(infer_target(droplet.address, 8400, "echo"), 50, 4)
    assert metric(summing.api.metrics(), "nv_inference_request_summary_us", model="echo", quantile="0.95") > 0
    summing.remove()


def test_poll_mode_finds_models_and_refuses_loads(droplet: Machine) -> None:
    options = Options(http=8500, grpc=8501, metrics=8502, repository="/models-e", control="poll")
    polling = unit.install(droplet, options, "triton-e", ["echo"])
    polling.start()
    with pytest.raises(AnswerError, match="explicit model load / unload is not allowed"):
        polling.api.load("echo")
    repository.add_model(polling.models, "curve")
    polling.api.wait_state("curve", "READY")
    polling.remove()


def test_it_starts_beside_the_nvml_stub(droplet: Machine, server: TritonUnit) -> None:
    nvml.install(droplet, machines.ONE_H100)
    try:
        server.restart()
        assert "nv_gpu_utilization{" not in server.api.metrics()
    finally:
        nvml.remove(droplet)


def test_the_newer_release_runs_it_too(lab_trixie: Machine) -> None:
    loaded = tuple(name for name in LOADED if name not in ("vllm_model", "cached"))
    triton = unit.install(lab_trixie, Options(load=loaded))
    triton.start()
    try:
        results: list[Result] = [
            closed_loop(target(triton.api, "echo", (1, 2, 3), batch=2), 60, 6),
            closed_loop(stream_target(triton.api.address, 8000, "stream", STREAM), 6, 2),
            closed_loop(stream_target(triton.api.address, 8000, "tensorrt_llm", TENSORRT_LLM), 6, 2),
        ]
        assert [one.succeeded for one in results] == [60, 6, 6]
        assert triton.api.infer("echo", 7, 3)["outputs"][0]["data"] == [7, 7, 7]
    finally:
        triton.remove()
