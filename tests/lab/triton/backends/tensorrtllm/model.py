"""The TensorRT-LLM backend as far as Triton and its metrics can tell: names and labels are those of the real one.

Source: triton-inference-server/tensorrtllm_backend, inflight_batcher_llm/src/custom_metrics_reporter, and the same
backend's Python model, whose config says ``backend: "python"`` and which publishes the same families.
"""

import json
import time
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]
from inflight import Engine, Sequence  # type: ignore[import-not-found]
from lab_tensors import number, read, respond  # type: ignore[import-not-found]

FAMILIES = {
    "nv_trt_llm_request_metrics": (
        "TRT LLM request metrics",
        "request_type",
        ("active", "max", "scheduled", "context", "waiting"),
    ),
    "nv_trt_llm_runtime_memory_metrics": (
        "TRT LLM runtime memory metrics",
        "memory_type",
        ("cpu", "gpu", "pinned"),
    ),
    "nv_trt_llm_kv_cache_block_metrics": (
        "TRT LLM KV cache block metrics",
        "kv_cache_block_type",
        ("max", "free", "used", "tokens_per", "fraction"),
    ),
    "nv_trt_llm_inflight_batcher_metrics": (
        "TRT LLM inflight_batcher-specific metrics",
        "inflight_batcher_specific_metric",
        ("total_context_tokens", "generation_requests", "micro_batch_id", "paused_requests"),
    ),
    "nv_trt_llm_general_metrics": ("General TRT LLM metrics", "general_type", ("timestamp", "iteration_counter")),
}
TOKENS_PER_BLOCK = 64


class Metrics:
    """The five gauge families of one model version."""

    def __init__(self, labels: dict[str, str], slots: int, blocks: int) -> None:
        self.slots, self.blocks, self.iterations = slots, blocks, 0
        self.families: list[Any] = []  # kept, since the metrics end with their families
        self.gauges: dict[tuple[str, str], Any] = {}
        for name, (text, label, values) in FAMILIES.items():
            family = pb_utils.MetricFamily(name=name, description=text, kind=pb_utils.MetricFamily.GAUGE)
            self.families.append(family)
            for value in values:
                self.gauges[label, value] = family.Metric(labels={label: value, **labels})

    def publish(self, step: Any) -> None:
        """One step's figures; what a CPU engine has none of stays 0."""
        self.iterations += 1
        used = min(self.blocks, -(-step.held_tokens // TOKENS_PER_BLOCK))
        figures = {
            ("request_type", "active"): step.running + step.waiting,
            ("request_type", "max"): self.slots,
            ("request_type", "scheduled"): step.running,
            ("request_type", "waiting"): step.waiting,
            ("kv_cache_block_type", "max"): self.blocks,
            ("kv_cache_block_type", "free"): self.blocks - used,
            ("kv_cache_block_type", "used"): used,
            ("kv_cache_block_type", "tokens_per"): TOKENS_PER_BLOCK,
            ("kv_cache_block_type", "fraction"): used / self.blocks,
            ("inflight_batcher_specific_metric", "total_context_tokens"): step.prompt_tokens,
            ("inflight_batcher_specific_metric", "generation_requests"): step.running,
            ("general_type", "timestamp"): int(time.time()),
            ("general_type", "iteration_counter"): self.iterations,
        }
        for place, value in figures.items():
            self.gauges[place].set(value)


class TritonPythonModel:
    """Answers input_ids with request_output_len tokens, one response each where streaming was asked for."""

    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        """The config is complete as it stands."""
        return config

    def initialize(self, args: dict[str, str]) -> None:
        """Start the engine that the parameters describe."""
        config = json.loads(args["model_config"])
        parameters = {key: value["string_value"] for key, value in config["parameters"].items()}
        slots = int(parameters["max_num_sequences"])
        blocks = int(parameters["max_tokens_in_paged_kv_cache"]) // TOKENS_PER_BLOCK
        labels = {"model": args["model_name"], "version": args["model_version"]}
        self.metrics = Metrics(labels, slots, blocks)
        self.engine = Engine(slots, float(parameters["lab_step_ms"]) / 1000, self.metrics.publish)

    def execute(self, requests: list[Any]) -> None:
        """Hand the requests to the engine; the responses come from there."""
        for request in requests:
            prompt = read(request, "input_ids").size
            wanted = number(request, "request_output_len", 16)
            streaming = bool(number(request, "streaming", 0))
            sender = request.get_response_sender()

            def send(token: int, sender: Any = sender, wanted: int = wanted, streaming: bool = streaming) -> None:
                if streaming or token == wanted:
                    tokens = np.arange(token - 1 if streaming else 0, token, dtype=np.int32).reshape(1, 1, -1)
                    sender.send(respond("output_ids", tokens))

            def finish(sender: Any = sender) -> None:
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

            self.engine.add(Sequence(prompt, wanted, send, finish))

    def finalize(self) -> None:
        """Finish what was accepted."""
        self.engine.close()
