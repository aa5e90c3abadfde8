"""The practice droplet's models, and their configs as Triton answers them. Every name says that it is simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from console.demo.batching import Batcher

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Model:
    """One model.

    Attributes:
        batcher: How it is served; None for the language model, which batches in flight.
        peak_rate: Requests a second at the peak.
        memory: Bytes on the GPU.
        dram: Share of the GPU's DRAM throughput that an execution takes, from a single request's to a full batch's.
    """

    name: str
    backend: str
    batcher: Batcher | None
    peak_rate: float
    memory: int
    dram: tuple[float, float]


WHISPER, IMAGES, RERANKER, LLM, OCR = "sim_whisper", "sim_resnet50", "sim_reranker", "sim_llm", "sim_ocr"
MODELS = {
    model.name: model
    for model in (
        Model(
            WHISPER,
            "onnxruntime",
            Batcher(0.024, 0.012, 8, delay_s=0.004, patience_s=0.9),
            54.0,
            9 * GIB,
            (0.25, 0.82),
        ),
        Model(IMAGES, "tensorrt", Batcher(0.0035, 0.0004, 32, delay_s=0.001), 160.0, 3 * GIB, (0.15, 0.6)),
        Model(RERANKER, "onnxruntime", Batcher(0.017, 0.001, 8, merges=False), 38.0, 4 * GIB, (0.2, 0.25)),
        Model(LLM, "vllm", None, 5.5, 30 * GIB, (0.55, 0.8)),
        Model(OCR, "onnxruntime", Batcher(0.02, 0.004, 4, delay_s=0.002), 12.0, 5 * GIB, (0.2, 0.5)),
    )
}


def config(name: str) -> dict[str, Any]:
    """The config in force."""
    model = MODELS[name]
    batcher = model.batcher
    found: dict[str, Any] = {
        "name": name,
        "platform": "",
        "backend": model.backend,
        "version_policy": {"latest": {"num_versions": 1}},
        "max_batch_size": batcher.max_batch if batcher else 0,
        "input": [
            _tensor("text_input" if batcher is None else "INPUT", "TYPE_STRING" if batcher is None else "TYPE_FP32")
        ],
        "output": [
            _tensor(
                "text_output" if batcher is None else "OUTPUT", "TYPE_STRING" if batcher is None else "TYPE_FP32"
            )
        ],
        "instance_group": [{"name": f"{name}_0", "kind": "KIND_GPU", "count": 1, "gpus": [0]}],
        "parameters": {"simulated": {"string_value": "true"}},
    }
    if batcher is None:
        found["model_transaction_policy"] = {"decoupled": True}
    elif batcher.merges:
        found["dynamic_batching"] = {
            "preferred_batch_size": [],
            "max_queue_delay_microseconds": round(batcher.delay_s * 1e6),
        }
        if batcher.patience_s is not None:
            found["dynamic_batching"]["default_queue_policy"] = {
                "timeout_action": "REJECT",
                "default_timeout_microseconds": round(batcher.patience_s * 1e6),
            }
    return found


def _tensor(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "data_type": kind, "dims": [1]}
