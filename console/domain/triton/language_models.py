"""What the backends that batch in flight tell about themselves, by the names of their Prometheus metrics.

TensorRT-LLM: ``nv_trt_llm_*`` and ``nv_llm_*`` (tensorrtllm_backend, custom_metrics_reporter.cc). vLLM:
``vllm:*`` (vllm_backend, src/utils/metrics.py; newer engines say ``kv_cache_usage_perc`` and
``inter_token_latency_seconds``). TensorRT-LLM has no times to the first or between responses; tokens count
there when their response is complete. Triton itself measures the time to the first response where
``--metrics-config histogram_latencies=true`` (``nv_inference_first_response_histogram_ms``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

_BY_NAME = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:gpu_cache_usage_perc": "kv_ratio",
    "vllm:kv_cache_usage_perc": "kv_ratio",
    "vllm:generation_tokens_total": "tokens",
    "vllm:time_to_first_token_seconds_sum": "first_s",
    "vllm:time_to_first_token_seconds_count": "first_count",
    "nv_inference_first_response_histogram_ms_sum": "response_ms",
    "nv_inference_first_response_histogram_ms_count": "response_count",
    "vllm:time_per_output_token_seconds_sum": "between_s",
    "vllm:time_per_output_token_seconds_count": "between_count",
    "vllm:inter_token_latency_seconds_sum": "inter_s",
    "vllm:inter_token_latency_seconds_count": "inter_count",
    "nv_llm_output_token_len_sum": "tokens",
}
_BY_LABEL = {
    "nv_trt_llm_request_metrics": {
        'request_type="scheduled"': "running",
        'request_type="active"': "active",
        'request_type="waiting"': "waiting",
    },
    "nv_trt_llm_kv_cache_block_metrics": {
        'kv_cache_block_type="fraction"': "kv_ratio",
        'kv_cache_block_type="used"': "kv_used",
        'kv_cache_block_type="max"': "kv_max",
    },
}


@lru_cache(maxsize=2048)
def _role(series: str) -> str | None:
    name, _, labels = series.partition("{")
    role = _BY_NAME.get(name)
    if role is None:
        for label, of_label in _BY_LABEL.get(name, {}).items():
            if label in labels:
                return of_label
    return role


def known(series: Mapping[str, float]) -> dict[str, float]:
    """The figures that matter out of a model's custom metrics, summed over further labels (the fullest KV cache).

    Keys: ``running``, ``active``, ``waiting`` (requests), ``kv_ratio`` (0 to 1), ``kv_used``, ``kv_max``
    (blocks), ``tokens`` (cumulative), and ``first_s``, ``first_count``, ``between_s``, ``between_count``,
    ``inter_s``, ``inter_count`` (cumulative seconds and counts of histograms), ``response_ms``,
    ``response_count`` (Triton's own histogram of the time to the first response, in milliseconds).
    """
    found: dict[str, float] = {}
    for key, value in series.items():
        role = _role(key)
        if role is None:
            continue
        if role == "kv_ratio":
            found[role] = max(value, found.get(role, 0.0))
        else:
            found[role] = found.get(role, 0.0) + value
    return found


def kv_cache_percent(figures: Mapping[str, float]) -> float | None:
    """Share of the KV cache in use; None where the backend does not tell, or tells what cannot be."""
    if "kv_ratio" in figures:
        ratio = figures["kv_ratio"]
    elif figures.get("kv_max"):
        ratio = figures.get("kv_used", 0.0) / figures["kv_max"]
    else:
        return None
    return 100 * ratio if 0 <= ratio <= 1 else None
