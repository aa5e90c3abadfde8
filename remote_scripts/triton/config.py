"""What of a model's config in force decides how its figures are to be read.

``GET /v2/models/M/versions/V/config`` answers the config after auto-completion, not the file on disk.
"""

from __future__ import annotations

from typing import Any

from remote_scripts.triton.json import members, parse, text, whole

KEYS = ("backend", "max_batch_size", "scheduling", "decoupled", "in_flight_batching", "response_cache")
"""What ``read_config`` gives; all of it stands in the document."""
_IN_FLIGHT_PARAMETERS = ("gpt_model_type", "batching_type")
_IN_FLIGHT_BACKENDS = ("vllm", "tensorrtllm")


def read_config(body: bytes) -> dict[str, Any]:
    """The wire's fields of a model that come from its config.

    Raises:
        ValueError: the body is no config.
    """
    config = members(parse(body))
    if "name" not in config:
        raise ValueError("it has no name")
    backend = text(config.get("backend")) or text(config.get("platform"))
    found: dict[str, Any] = {
        # protobuf leaves out what is at its default in some versions: absent means 0, false.
        "max_batch_size": whole(config.get("max_batch_size", 0)) or 0,
        "scheduling": _scheduling(config),
        "decoupled": members(config.get("model_transaction_policy")).get("decoupled") is True,
        "in_flight_batching": _in_flight(backend, members(config.get("parameters"))),
        "response_cache": members(config.get("response_cache")).get("enable") is True,
    }
    if backend is not None:
        found["backend"] = backend
    return found


def _scheduling(config: dict[str, Any]) -> str:
    if "ensemble_scheduling" in config or config.get("platform") == "ensemble":
        return "ensemble"
    for choice in ("dynamic_batching", "sequence_batching"):
        if choice in config:
            return choice
    return "default"


def _in_flight(backend: str | None, parameters: dict[str, Any]) -> bool:
    """Whether the backend batches by itself while requests run; decoupled or not makes no difference.

    vLLM always does. TensorRT-LLM's backend does unless its ``gpt_model_type`` (``batching_type`` since) says V1,
    and its Python variant carries the same parameter under the backend "python".
    """
    for name in _IN_FLIGHT_PARAMETERS:
        value = text(members(parameters.get(name)).get("string_value"))
        if value is not None and not value.startswith("${"):
            return "inflight" in value.lower().replace("_", "").replace("-", "")
    return backend in _IN_FLIGHT_BACKENDS
