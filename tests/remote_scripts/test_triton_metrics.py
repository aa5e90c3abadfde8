from __future__ import annotations

import math

import pytest

from remote_scripts.triton.metrics import SERIES_LIMIT, MetricsReader, classify, tidy
from tests.remote_scripts.replayed_triton import DATA


def captured(folder: str, series: str, file: str = "metrics.txt") -> float:
    """The value as it stands on the page."""
    lines = (DATA / folder / file).read_text().splitlines()
    return next(float(line[len(series) :]) for line in lines if line.startswith(series + " "))


def test_a_real_page_with_failures_by_reason() -> None:
    found = MetricsReader().read((DATA / "failures/metrics.txt").read_bytes())
    assert found.garbage == 0
    impatient = found.models["impatient", "1"].fields
    labels = 'model="impatient",version="1"'
    assert impatient["metrics_success"] == captured("failures", f"nv_inference_request_success{{{labels}}}")
    rejected = captured("failures", 'nv_inference_request_failure{model="impatient",reason="REJECTED",version="1"}')
    assert impatient["failures"] == {"REJECTED": rejected, "CANCELED": 0, "BACKEND": 0, "OTHER": 0}
    assert rejected > 0
    assert found.models["flaky", "1"].fields["failures"]["BACKEND"] > 0
    assert impatient["pending"] == 0
    assert not found.models["echo", "1"].summaries
    assert found.series == {}


def test_a_reload_leaves_the_metrics_as_they_are() -> None:
    found = MetricsReader().read((DATA / "reloaded/metrics.txt").read_bytes())
    assert found.models["echo", "1"].fields["metrics_success"] > 80


def test_a_real_page_with_summaries() -> None:
    found = MetricsReader().read((DATA / "summaries/metrics.txt").read_bytes())
    series = 'nv_inference_request_summary_us{model="echo",version="1",quantile="0.95"}'
    assert found.models["echo", "1"].p95 == [captured("summaries", series)]
    before = MetricsReader().read((DATA / "summaries/metrics_before.txt").read_bytes())
    assert before.models["echo", "1"].summaries
    assert before.models["echo", "1"].p95 == []


def test_what_a_backend_that_batches_in_flight_publishes_becomes_series_of_its_model() -> None:
    model = MetricsReader().read((DATA / "streamed/metrics.txt").read_bytes()).models["vllm_model", "1"]
    assert model.in_flight
    series = model.fields["series"]
    for name in ("vllm:generation_tokens_total", "vllm:time_to_first_token_seconds_sum"):
        key = name + '{model="vllm_model",version="1"}'
        assert series[key] == pytest.approx(captured("streamed", key), rel=1e-8)
    assert not any("_bucket" in name for name in series)


def test_the_series_of_a_model_on_several_gpus_are_summed() -> None:
    page = (
        b'nv_inference_request_success{model="m",version="1"} 0\n'
        b'nv_inference_request_success{gpu_uuid="GPU-a",model="m",version="1"} 5\n'
        b'nv_inference_request_success{gpu_uuid="GPU-b",model="m",version="1"} 7\n'
        b'nv_inference_request_failure{gpu_uuid="GPU-a",model="m",reason="BACKEND",version="1"} 1\n'
        b'nv_inference_request_failure{gpu_uuid="GPU-b",model="m",reason="BACKEND",version="1"} 2\n'
    )
    fields = MetricsReader().read(page).models["m", "1"].fields
    assert (fields["metrics_success"], fields["failures"]) == (12, {"BACKEND": 3})


def test_failures_without_a_reason_are_not_split() -> None:
    found = MetricsReader().read(b'nv_inference_request_failure{model="m",version="1"} 4\n')
    assert found.models == {}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e30"])
def test_counters_that_cannot_be_true_are_left_out(value: str) -> None:
    page = f'nv_inference_request_success{{model="m",version="1"}} {value}\n'.encode()
    assert MetricsReader().read(page).models["m", "1"].fields == {}


def test_a_million_series_are_left_out_and_counted() -> None:
    page = b"\n".join(b'custom{n="%d"} 1' % number for number in range(200_000))
    found = MetricsReader().read(page)
    assert len(found.series) == SERIES_LIMIT
    assert found.left_out == 200_000 - SERIES_LIMIT


def test_a_custom_metric_without_a_model_belongs_to_the_server() -> None:
    found = MetricsReader().read(b'my_queue{a="b"} 2.5\nmy_nan NaN\n')
    assert found.series == {'my_queue{a="b"}': 2.5}


@pytest.mark.parametrize(
    "name",
    [
        "nv_gpu_utilization",
        "nv_cpu_utilization",
        "nv_cache_util",
        "nv_inference_queue_duration_us",
        "nv_energy_consumption",
    ],
)
def test_tritons_own_metrics_are_no_custom_series(name: str) -> None:
    assert classify(name, {"model": "m", "version": "1"}, name) is None


def test_the_time_to_the_first_response_passes_through() -> None:
    name = "nv_inference_first_response_histogram_ms_sum"
    target = classify(name, {"model": "m", "version": "1"}, name)
    assert target is not None
    assert target.field == "series"


def test_whole_numbers_have_no_fraction_and_others_nine_digits() -> None:
    assert repr(tidy(5.0)) == "5"
    assert tidy(1 / 3) == 0.333333333
    assert tidy(1e18) == 1e18
    assert math.copysign(1, tidy(-2.5)) == -1
