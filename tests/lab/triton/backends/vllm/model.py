"""The vLLM backend as far as Triton and its metrics can tell: names, labels and kinds are those of the real one.

Source: triton-inference-server/vllm_backend, src/utils/metrics.py. It is a Python-based backend there too, so a
model's config says ``backend: "vllm"`` and its folder holds no model.py.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]
from inflight import Engine, Sequence  # type: ignore[import-not-found]

COUNTERS = {
    "vllm:prompt_tokens_total": "Number of prefill tokens processed.",
    "vllm:generation_tokens_total": "Number of generation tokens processed.",
    "vllm:num_preemptions_total": "Number of preemption tokens processed.",
}
GAUGES = {
    "vllm:num_requests_running": "Number of requests currently running on GPU.",
    "vllm:num_requests_waiting": "Number of requests waiting to be processed.",
    "vllm:gpu_cache_usage_perc": "GPU KV-cache usage. 1 means 100 percent usage.",
}
HISTOGRAMS = {
    "vllm:time_to_first_token_seconds": ("Histogram of time to first token in seconds.", [0.01, 0.1, 0.25, 1.0]),
    "vllm:time_per_output_token_seconds": (
        "Histogram of time per output token in seconds.",
        [0.01, 0.05, 0.1, 1.0],
    ),
    "vllm:e2e_request_latency_seconds": ("Histogram of end to end request latency in seconds.", [0.3, 1.0, 5.0]),
}


class Metrics:
    """The metrics of one model version."""

    def __init__(self, labels: dict[str, str], cache_tokens: int) -> None:
        self.cache_tokens = cache_tokens
        self.families: list[Any] = []  # kept, since the metrics end with their families
        kinds = pb_utils.MetricFamily
        self.counters = {name: self.add(name, text, kinds.COUNTER, labels) for name, text in COUNTERS.items()}
        self.gauges = {name: self.add(name, text, kinds.GAUGE, labels) for name, text in GAUGES.items()}
        self.histograms: dict[str, Any] = {}
        if hasattr(kinds, "HISTOGRAM"):  # server 24.11 and later
            for name, (text, buckets) in HISTOGRAMS.items():
                self.histograms[name] = self.add(name, text, kinds.HISTOGRAM, labels, buckets=buckets)

    def add(self, name: str, text: str, kind: Any, labels: dict[str, str], **more: Any) -> Any:
        """A family with its one metric."""
        family = pb_utils.MetricFamily(name=name, description=text, kind=kind)
        self.families.append(family)
        return family.Metric(labels=labels, **more)

    def publish(self, step: Any) -> None:
        """One step's figures."""
        self.gauges["vllm:num_requests_running"].set(step.running)
        self.gauges["vllm:num_requests_waiting"].set(step.waiting)
        self.gauges["vllm:gpu_cache_usage_perc"].set(min(1.0, step.held_tokens / self.cache_tokens))
        self.counters["vllm:prompt_tokens_total"].increment(step.prompt_tokens)
        self.counters["vllm:generation_tokens_total"].increment(step.generated_tokens)
        observed = {
            "vllm:time_to_first_token_seconds": step.first_token_s,
            "vllm:time_per_output_token_seconds": step.between_tokens_s,
            "vllm:e2e_request_latency_seconds": step.request_s,
        }
        for name, metric in self.histograms.items():
            for seconds in observed[name]:
                metric.observe(seconds)


class TritonPythonModel:
    """Answers text_input with as many words as sampling_parameters asks for (max_tokens, 16 unless told)."""

    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        """The config is complete as it stands."""
        return config

    def initialize(self, args: dict[str, str]) -> None:
        """Start the engine that the version's model.json describes."""
        description = Path(args["model_repository"]) / args["model_version"] / "model.json"
        self.engine_args = json.loads(description.read_text())
        labels = {"model": args["model_name"], "version": args["model_version"]}
        self.metrics = Metrics(labels, self.engine_args["lab_cache_tokens"])
        self.engine = Engine(
            self.engine_args["max_num_seqs"], self.engine_args["lab_step_ms"] / 1000, self.metrics.publish
        )

    def execute(self, requests: list[Any]) -> None:
        """Hand the requests to the engine; the responses come from there."""
        for request in requests:
            text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().flatten()[0].decode()
            sampling = pb_utils.get_input_tensor_by_name(request, "sampling_parameters")
            wanted = int(json.loads(sampling.as_numpy().flatten()[0]).get("max_tokens", 16)) if sampling else 16
            sender = request.get_response_sender()

            def send(number: int, sender: Any = sender) -> None:
                word = pb_utils.Tensor("text_output", np.array([f"word{number} ".encode()], dtype=np.object_))
                sender.send(pb_utils.InferenceResponse([word]))

            def finish(sender: Any = sender) -> None:
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

            self.engine.add(Sequence(len(text.split()), wanted, send, finish))

    def finalize(self) -> None:
        """Finish what was accepted."""
        self.engine.close()
