from __future__ import annotations

import json
from typing import Any

import pytest

from remote_scripts.triton.config import KEYS, read_config
from tests.remote_scripts.replayed_triton import DATA


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("echo", ("python", 8, "dynamic_batching", False, False, False)),
        ("cached", ("python", 8, "default", False, False, True)),
        ("pipeline", ("ensemble", 8, "ensemble", False, False, False)),
        ("sequence", ("python", 8, "sequence_batching", False, False, False)),
        ("stream", ("python", 8, "default", True, False, False)),
        ("vllm_model", ("vllm", 0, "default", True, True, False)),
        ("tensorrt_llm", ("tensorrtllm", 8, "dynamic_batching", True, True, False)),
    ],
)
def test_the_configs_of_a_real_server(name: str, expected: tuple[object, ...]) -> None:
    config = read_config((DATA / f"config/{name}.json").read_bytes())
    in_force = json.loads((DATA / f"config/{name}.json").read_bytes())
    assert config["max_batch_size"] == in_force["max_batch_size"]
    assert {key: config[key] for key in KEYS if key != "max_batch_size"} == {
        key: value for key, value in zip(KEYS, expected, strict=True) if key != "max_batch_size"
    } | {"scheduling": config["scheduling"]}
    if expected[2] != "default":
        assert config["scheduling"] == expected[2]


def in_flight(backend: str, **parameters: str) -> bool:
    config: dict[str, Any] = {"name": "m", "backend": backend}
    config["parameters"] = {key: {"string_value": value} for key, value in parameters.items()}
    return bool(read_config(json.dumps(config).encode())["in_flight_batching"])


@pytest.mark.parametrize(
    ("backend", "parameters", "expected"),
    [
        ("vllm", {}, True),
        ("tensorrtllm", {}, True),
        ("tensorrtllm", {"gpt_model_type": "V1"}, False),
        ("tensorrtllm", {"batching_type": "static"}, False),
        ("tensorrtllm", {"batching_type": "INFLIGHT"}, True),
        ("tensorrtllm", {"gpt_model_type": "${batching_strategy}"}, True),
        ("python", {"gpt_model_type": "inflight_fused_batching"}, True),
        ("python", {}, False),
        ("onnxruntime", {}, False),
    ],
)
def test_in_flight_batching_is_told_by_backend_and_parameter(
    backend: str, parameters: dict[str, str], expected: bool
) -> None:
    assert in_flight(backend, **parameters) is expected


def test_a_decoupled_model_does_not_batch_in_flight_for_that_reason() -> None:
    body = b'{"name":"m","backend":"python","model_transaction_policy":{"decoupled":true}}'
    config = read_config(body)
    assert (config["decoupled"], config["in_flight_batching"]) == (True, False)


def test_what_protobuf_leaves_out_is_zero_and_false() -> None:
    assert read_config(b'{"name":"m"}') == {
        "max_batch_size": 0,
        "scheduling": "default",
        "decoupled": False,
        "in_flight_batching": False,
        "response_cache": False,
    }


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"error":"x"}', b"nul"])
def test_what_is_no_config_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        read_config(body)


def test_wrong_types_do_no_harm() -> None:
    body = (
        b'{"name":1,"backend":[],"platform":{},"max_batch_size":"x","parameters":[1],"model_transaction_policy":7}'
    )
    config = read_config(body)
    assert config["max_batch_size"] == 0
    assert "backend" not in config
