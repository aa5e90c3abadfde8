from __future__ import annotations

import ast
import json
import shlex
import subprocess
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from console.domain.triton.call import Signature, Tensor, curl, python, read_signature

NASTY = "a'b\"c$(touch x)`id`\\ \x1b[31m\n; rm"


def signature(name: str = "echo", *inputs: Tensor) -> Signature:
    made = inputs or (Tensor("INPUT", "FP32", (1, 4)),)
    return Signature(name, "1", made, (Tensor("OUTPUT", "FP32", (1, 4)),))


def test_metadata_becomes_a_signature_with_what_varies_as_one() -> None:
    found = read_signature(
        {
            "name": "m", "versions": ["1", "3"],
            "inputs": [{"name": "x", "datatype": "INT64", "shape": ["-1", "16"]}, {"name": 3}, "y"],
            "outputs": [{"name": "y", "datatype": "BYTES", "shape": [-1]}],
        }
    )  # fmt: skip
    assert found == Signature("m", "3", (Tensor("x", "INT64", (1, 16)),), (Tensor("y", "BYTES", (1,)),))


@pytest.mark.parametrize("told", [None, [], {"name": 1}, "x", {"versions": []}])
def test_what_is_no_metadata_is_none(told: object) -> None:
    assert read_signature(told) is None


def test_absurd_shapes_do_no_harm() -> None:
    found = read_signature(
        {"name": "m", "inputs": [{"name": "x", "datatype": "FP32", "shape": [10**9, 10**9, "?"]}]}
    )
    assert found is not None
    assert found.inputs[0].shape == (1, 1, 1)


def body(command: str) -> dict[str, Any]:
    """What a shell would give to curl as its body."""
    words = shlex.split(command)
    if "|" in words:
        made = subprocess.run(words[: words.index("|")], capture_output=True, check=True)
        found: dict[str, Any] = json.loads(made.stdout)
    else:
        found = json.loads(words[words.index("-d") + 1])
    return found


@pytest.mark.parametrize("shape", [(1, 4), (3, 224, 224)])
@pytest.mark.parametrize("name", ["INPUT", NASTY])
def test_curl_sends_zeros_of_the_right_shape_whatever_the_name(name: str, shape: tuple[int, ...]) -> None:
    command = curl(8000, signature("echo", Tensor(name, "FP32", shape)))
    (sent,) = body(command)["inputs"]
    assert sent["name"] == name
    assert sent["shape"] == list(shape)
    assert len(sent["data"]) == shape[0] * shape[1] * (shape[2] if len(shape) > 2 else 1)
    assert "http://127.0.0.1:8000/v2/models/echo/versions/1/infer" in command
    assert len(command) < 2000


def test_a_models_name_is_quoted_for_url_and_shell() -> None:
    words = shlex.split(curl(8000, signature(NASTY)))
    url = next(word for word in words if word.startswith("http"))
    assert set(url) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/.%-_~")


def test_half_precision_has_no_form_in_json_and_says_so() -> None:
    assert curl(8000, signature("m", Tensor("x", "FP16", (1,)))).startswith("# FP16")


@pytest.mark.parametrize("name", ["echo", NASTY])
def test_the_python_call_is_a_program_with_the_names_as_they_are(name: str) -> None:
    program = python(8000, signature(name, Tensor(name, "FP32", (1, 4)), Tensor("t", "BYTES", (1, 1))))
    texts = {node.value for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Constant)}
    assert name in texts
    assert program.isascii()


def test_the_python_calls_inputs_are_what_tritonclient_takes() -> None:
    program = python(8000, signature("m", Tensor("x", "INT32", (2, 3)), Tensor("t", "BYTES", (1, 1))))
    inputs = "\n".join(line for line in program.split("\n") if line.startswith("inputs"))
    fake = SimpleNamespace(InferInput=Taken)
    found: dict[str, list[Taken]] = {}
    exec(inputs, {"triton": fake, "np": numpy}, found)
    assert [(one.name, one.shape, one.datatype, one.kind) for one in found["inputs"]] == [
        ("x", [2, 3], "INT32", "int32"), ("t", [1, 1], "BYTES", "object"),
    ]  # fmt: skip


class Taken:
    """An input as tritonclient would take it: numpy's shape and type must be what was said."""

    def __init__(self, name: str, shape: list[int], datatype: str) -> None:
        self.name, self.shape, self.datatype, self.kind = name, shape, datatype, ""

    def set_data_from_numpy(self, data: numpy.ndarray) -> None:
        assert list(data.shape) == self.shape
        self.kind = str(data.dtype)
