"""The stand-in's answers, in the words and shapes of Triton's own (captured from 2.51.0: tests/data/triton)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from console.demo.batching import Queue
from console.demo.catalogue import MODELS, OCR, config
from console.demo.counters import Counters, Split
from console.demo.in_flight import Engine
from console.demo.triton import VERSION, StandIn

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)


def server() -> dict[str, Any]:
    """``GET /v2``."""
    return {
        "name": "stand-in for triton: the demo of droplet-console, all figures are simulated",
        "version": VERSION,
        "extensions": ["model_repository", "model_configuration", "statistics"],
    }


def index(triton: StandIn) -> list[dict[str, str]]:
    """``POST /v2/repository/index``."""
    found = []
    for name in sorted(MODELS):
        entry = {"name": name, "version": "1", "state": "READY"}
        if name == OCR:
            entry["state"] = triton.moment.ocr
            if triton.moment.ocr_reason is not None:
                entry["reason"] = triton.moment.ocr_reason
        found.append(entry)
    return found


def statistics(triton: StandIn, wall: Callable[[float], float]) -> dict[str, Any]:
    """``GET /v2/models/stats``.

    Args:
        triton: The server.
        wall: From the demo's clock to Unix seconds.
    """
    return {"model_stats": [_model(name, one, wall) for name, one in sorted(triton.served.items())]}


def _model(name: str, one: Queue | Engine, wall: Callable[[float], float]) -> dict[str, Any]:
    counters = one.counters
    return {
        "name": name,
        "version": "1",
        "last_inference": 0 if counters.last is None else round(wall(counters.last) * 1000),
        "inference_count": counters.inferences,
        "execution_count": counters.executions,
        "inference_stats": {
            "success": _duration(counters.success, counters.success_s),
            "fail": _duration(counters.fail, counters.fail_s),
            "queue": _duration(counters.success, counters.queue_s),
            "compute_input": _duration(counters.success, counters.input_s),
            "compute_infer": _duration(counters.success, counters.infer_s),
            "compute_output": _duration(counters.success, counters.output_s),
            "cache_hit": _duration(0, 0.0),
            "cache_miss": _duration(0, 0.0),
        },
        "response_stats": {},  # backends in Python have none (2.51.0)
        "batch_stats": [{"batch_size": size, **_split(split)} for size, split in sorted(counters.batches.items())],
        "memory_usage": [],
    }


def _duration(count: int, seconds: float) -> dict[str, int]:
    return {"count": count, "ns": round(seconds * 1e9)}


def _split(split: Split) -> dict[str, Any]:
    return {
        "compute_input": _duration(split.count, split.input_s),
        "compute_infer": _duration(split.count, split.infer_s),
        "compute_output": _duration(split.count, split.output_s),
    }


def metrics(triton: StandIn, now: float) -> str:
    """``GET /metrics``, Prometheus text."""
    lines: list[str] = []
    served = sorted(triton.served.items())

    def family(name: str, kind: str, words: str, samples: Iterable[tuple[str, float]]) -> None:
        lines.append(f"# HELP {name} {words}")
        lines.append(f"# TYPE {name} {kind}")
        lines.extend(f"{name}{labels} {value:.12g}" for labels, value in samples)

    def label(name: str, more: str = "") -> str:
        return f'{{model="{name}"{more},version="1"}}'

    success, executions, failed = [], [], []
    for name, one in served:
        before = triton.forgotten.get(name, (0, 0, {}))
        success.append((label(name), float(one.counters.success + before[0])))
        executions.append((label(name), float(one.counters.executions + before[1])))
        for reason, count in one.counters.failed.items():
            failed.append((label(name, f',reason="{reason}"'), float(count + before[2].get(reason, 0))))
    family(
        "nv_inference_request_success", "counter", "Number of successful inference requests (simulated)", success
    )
    family("nv_inference_request_failure", "counter", "Number of failed inference requests (simulated)", failed)
    family("nv_inference_exec_count", "counter", "Number of model executions (simulated)", executions)
    pending = [(label(name), float(one.pending)) for name, one in served]
    family("nv_inference_pending_request_count", "gauge", "Instantaneous number of pending requests", pending)
    loads = [(label(name), 1.5 + 0.125 * triton.loads[name]) for name, _ in served]
    family("nv_model_load_duration_secs", "gauge", "Model load time in seconds (simulated)", loads)
    family(
        "nv_inference_request_summary_us",
        "summary",
        "Summary of inference request duration",
        _summaries(served, now),
    )
    for name, one in served:
        if isinstance(one, Engine):
            _vllm(family, label(name), one)
    return "\n".join(lines) + "\n"


def _summaries(served: Iterable[tuple[str, Queue | Engine]], now: float) -> list[tuple[str, float]]:
    found = []
    for name, one in served:
        for quantile in QUANTILES:
            value = one.counters.quantile(quantile, now)
            labels = f'{{model="{name}",version="1",quantile="{quantile:g}"}}'
            found.append((labels, float("nan") if value is None else float(round(value * 1e6))))
    return found


def _vllm(family: Callable[[str, str, str, Iterable[tuple[str, float]]], None], label: str, engine: Engine) -> None:
    """What vLLM's backend publishes beside Triton's own (vllm_backend, src/utils/metrics.py)."""
    tokens = engine.tokens
    for name, kind, value in (
        ("vllm:num_requests_running", "gauge", engine.running),
        ("vllm:num_requests_waiting", "gauge", engine.waiting),
        ("vllm:gpu_cache_usage_perc", "gauge", engine.cache_ratio),
        ("vllm:generation_tokens_total", "counter", tokens.generated),
        ("vllm:time_to_first_token_seconds_sum", "counter", tokens.first_s),
        ("vllm:time_to_first_token_seconds_count", "counter", tokens.first_count),
        ("vllm:time_per_output_token_seconds_sum", "counter", tokens.between_s),
        ("vllm:time_per_output_token_seconds_count", "counter", tokens.between_count),
    ):
        family(name, kind, "simulated", [(label, float(value))])


def counted(counters: Counters) -> int:
    """Requests that have an outcome."""
    return counters.success + counters.fail


def of_model(triton: StandIn, path: str) -> tuple[int, Any]:
    """What is asked about one model: its config, its metadata, its readiness, its statistics."""
    words = path.strip("/").split("/")
    name = words[2] if words[:2] == ["v2", "models"] and len(words) > 2 else ""
    rest = words[5:] if words[3:4] == ["versions"] else words[3:]
    if name not in triton.served:
        return 400, {"error": f"Request for unknown model: '{name}' is not found (stand-in)"}
    if rest == ["config"]:
        return 200, config(name)
    if rest == ["ready"]:
        return 200, ""
    if not rest:
        found = config(name)
        tensors = {
            side: [
                {
                    "name": one["name"],
                    "datatype": one["data_type"].removeprefix("TYPE_"),
                    "shape": [-1, *one["dims"]],
                }
            ]
            for side, one in (("inputs", found["input"][0]), ("outputs", found["output"][0]))
        }
        return 200, {"name": name, "versions": ["1"], "platform": "stand-in (simulated)", **tensors}
    return 404, {"error": "the stand-in of the demo does not answer this"}
