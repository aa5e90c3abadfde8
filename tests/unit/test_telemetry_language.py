from __future__ import annotations

from typing import Any

import pytest

from console.domain.telemetry import language
from console.domain.triton.language_models import known, kv_cache_percent
from tests.unit.telemetry_fake import CONFIG, FakeModel, Watched, model_of, watch, why

IN_FLIGHT = {**CONFIG, "in_flight_batching": True, "decoupled": True, "backend": "vllm"}
LABELS = '{model="llm",version="1"}'


def vllm(
    tokens: float, first: tuple[float, float], between: tuple[float, float], **gauges: float
) -> dict[str, float]:
    return {
        f"vllm:generation_tokens_total{LABELS}": tokens,
        f"vllm:time_to_first_token_seconds_sum{LABELS}": first[0],
        f"vllm:time_to_first_token_seconds_count{LABELS}": first[1],
        f"vllm:time_per_output_token_seconds_sum{LABELS}": between[0],
        f"vllm:time_per_output_token_seconds_count{LABELS}": between[1],
        **{f"vllm:{name}{LABELS}": value for name, value in gauges.items()},
    }


def llm(**more: Any) -> tuple[FakeModel, Watched]:
    model = FakeModel(dict(IN_FLIGHT), more=more)
    return model, watch(echo=model)


def test_vllm_tells_tokens_times_and_its_batch() -> None:
    model, watched = llm(series=vllm(100, (1, 2), (1, 100)))
    model.more["series"] = vllm(
        600, (2, 4), (6, 600), num_requests_running=7, num_requests_waiting=3, gpu_cache_usage_perc=0.25
    )
    sample = watched.model(seconds=2.0)
    assert sample.tokens_per_s == 250.0
    assert sample.first_response_ms == 500.0
    assert sample.between_responses_ms == 10.0
    assert (sample.running, sample.waiting, sample.kv_cache_percent) == (7, 3, 25.0)
    assert sample.series[f"vllm:generation_tokens_total{LABELS}"] == 600


def test_newer_vllm_has_other_names() -> None:
    figures = known(
        {f"vllm:kv_cache_usage_perc{LABELS}": 0.5, f"vllm:inter_token_latency_seconds_sum{LABELS}": 1.0}
    )
    assert kv_cache_percent(figures) == 50.0
    assert figures["inter_s"] == 1.0


def test_tensorrt_llm_tells_requests_blocks_and_tokens() -> None:
    """Labels as tensorrtllm_backend's README shows them."""

    def series(tokens: int) -> dict[str, float]:
        return {
            'nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"}': 5,
            'nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active",version="1"}': 9,
            'nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"}': 4,
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"}': 1560,
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"}': 6240,
            'nv_llm_output_token_len_sum{model="tensorrt_llm",response_metric_type="total_output_tokens"}': tokens,
        }

    model, watched = llm(series=series(1000))
    model.more["series"] = series(1300)
    sample = watched.tick()
    llm_sample = model_of(sample)
    assert (llm_sample.running, llm_sample.waiting, llm_sample.kv_cache_percent) == (5, 4, 25.0)
    assert llm_sample.tokens_per_s == 300.0
    assert why(sample, "first_response_ms") == "the droplet did not say"


def test_the_fraction_of_the_cache_outranks_the_blocks() -> None:
    assert kv_cache_percent({"kv_ratio": 0.4875, "kv_used": 1, "kv_max": 6239}) == 48.75
    assert kv_cache_percent({"kv_ratio": 1.5}) is None
    assert kv_cache_percent({}) is None


def responses(count: int, first: int, first_ms: int, all_ms: int, empty: int = 0) -> dict[str, int]:
    return {
        "count": count,
        "success": count - empty,
        "fail": 0,
        "empty": empty,
        "first_count": first,
        "first_ns": first_ms * 1_000_000,
        "compute_infer_ns": (all_ms - 1) * 1_000_000,
        "compute_output_ns": 1_000_000,
    }


def test_a_decoupled_model_is_told_by_its_response_statistics() -> None:
    model = FakeModel({**CONFIG, "decoupled": True}, more={"responses": responses(10, 2, 40, 100)})
    watched = watch(echo=model)
    model.more["responses"] = responses(22, 4, 100, 260, empty=2)
    sample = watched.tick()
    decoupled = model_of(sample)
    assert decoupled.responses_per_s == 10.0, "the two that only close a stream are none"
    assert decoupled.first_response_ms == 30.0
    assert decoupled.between_responses_ms == 10.0
    assert why(sample, "running") == language.NO_METRIC
    assert decoupled.rps == 0.0


def test_triton_s_own_histogram_of_first_responses_outranks_the_statistics() -> None:
    name = "nv_inference_first_response_histogram_ms"
    model = FakeModel({**CONFIG, "decoupled": True}, more={"responses": responses(10, 2, 40, 100)})
    model.more["series"] = {f"{name}_sum{LABELS}": 100.0, f"{name}_count{LABELS}": 2}
    watched = watch(echo=model)
    model.more = {
        "responses": responses(12, 4, 80, 140),
        "series": {f"{name}_sum{LABELS}": 300.0, f"{name}_count{LABELS}": 4},
    }
    assert watched.model().first_response_ms == 100.0


def test_no_response_in_the_window_is_no_time() -> None:
    _, watched = llm(series=vllm(100, (1, 2), (1, 100)), responses=responses(10, 2, 40, 100))
    sample = watched.tick()
    assert model_of(sample).tokens_per_s == 0.0
    assert why(sample, "first_response_ms") == language.NO_RESPONSES


@pytest.mark.parametrize("after", [vllm(5, (0.1, 1), (0.1, 5)), {}])
def test_a_backend_that_begins_anew_is_never_negative(after: dict[str, float]) -> None:
    model, watched = llm(series=vllm(100, (1, 2), (1, 100)))
    model.more["series"] = after
    sample = watched.tick()
    for figure in ("tokens_per_s", "first_response_ms", "between_responses_ms"):
        assert getattr(model_of(sample), figure) is None
        assert why(sample, figure) in (language.WENT_BACK, "the droplet did not say", language.NO_METRIC)


def test_a_plain_model_says_that_these_are_not_for_it() -> None:
    sample = watch().tick()
    for figure in ("tokens_per_s", "running", "kv_cache_percent", "responses_per_s", "first_response_ms"):
        assert why(sample, figure) == language.PLAIN
