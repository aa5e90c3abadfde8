"""Ready-to-paste calls of a model: curl and Python, made from what Triton says of its inputs.

Names come from a droplet and may hold anything: each is quoted for the language that it stands in.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from urllib.parse import quote

_ZEROS: Mapping[str, object] = {"BOOL": False, "BYTES": "", "FP32": 0.0, "FP64": 0.0}
"""What stands for nothing in JSON, by Triton's data type; 0 for the whole numbers."""
_NUMPY = {
    "BOOL": "bool", "BYTES": "object_", "FP16": "float16", "FP32": "float32", "FP64": "float64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32",
    "UINT64": "uint64",
}  # fmt: skip
_BY_HAND = 64
"""Elements that are written out; more are made by a program."""
_MOST = 1 << 24


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output.

    Attributes:
        name: Its name.
        datatype: Triton's word: "FP32", "BYTES", ...
        shape: Each dimension; what may vary became 1.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a model takes and gives."""

    name: str
    version: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def read_signature(metadata: object) -> Signature | None:
    """Triton's model metadata (GET v2/models/NAME/versions/V); None where it is none."""
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        return None
    versions = metadata.get("versions")
    version = versions[-1] if isinstance(versions, list) and versions and isinstance(versions[-1], str) else ""
    return Signature(metadata["name"], version, _tensors(metadata.get("inputs")), _tensors(metadata.get("outputs")))


def infer_path(name: str, version: str) -> str:
    """The path of an inference request, quoted for a URL."""
    at = f"/versions/{quote(version, safe='')}" if version not in ("", "-") else ""
    return f"/v2/models/{quote(name, safe='')}{at}"


def curl(port: int, model: Signature) -> str:
    """A command for a shell. Half-precision inputs have no form in JSON: then it says so."""
    url = f"http://127.0.0.1:{port}{infer_path(model.name, model.version)}/infer"
    odd = next((tensor.datatype for tensor in model.inputs if tensor.datatype in ("FP16", "BF16")), None)
    if odd is not None:
        return f"# {odd} has no form in JSON; use the Python call"
    head = f"curl -s {shlex.quote(url)} -H 'Content-Type: application/json'"
    if all(prod(tensor.shape) <= _BY_HAND for tensor in model.inputs):
        body = {"inputs": [_json(tensor, [_zero(tensor)] * prod(tensor.shape)) for tensor in model.inputs]}
        return f"{head} -d {shlex.quote(json.dumps(body))}"
    parts = [
        f"{{**{_json(tensor, None)!r}, 'data': [{_zero(tensor)!r}] * {prod(tensor.shape)}}}"
        for tensor in model.inputs
    ]
    program = f"import json; print(json.dumps({{'inputs': [{', '.join(parts)}]}}))"
    return f"python3 -c {shlex.quote(program)} | {head} -d @-"


def python(port: int, model: Signature) -> str:
    """A program for Python with tritonclient and numpy."""
    lines = [
        "# pip install numpy 'tritonclient[http]'",
        "import numpy as np",
        "import tritonclient.http as triton",
        "",
        f'client = triton.InferenceServerClient("127.0.0.1:{port}")',
        "inputs = []",
    ]
    for tensor in model.inputs:
        shape = list(tensor.shape)
        kind = _NUMPY.get(tensor.datatype, "float32")
        values = (
            f'np.full({shape}, b"", dtype=np.object_)' if kind == "object_" else f"np.zeros({shape}, np.{kind})"
        )
        lines += [
            f"inputs.append(triton.InferInput({tensor.name!a}, {shape}, {tensor.datatype!a}))",
            f"inputs[-1].set_data_from_numpy({values})",
        ]
    version = f", model_version={model.version!a}" if model.version not in ("", "-") else ""
    lines.append(f"result = client.infer({model.name!a}, inputs{version})")
    lines += [f"print(result.as_numpy({tensor.name!a}))" for tensor in model.outputs]
    return "\n".join(lines)


def _tensors(told: object) -> tuple[Tensor, ...]:
    if not isinstance(told, list):
        return ()
    return tuple(
        Tensor(one["name"], one["datatype"], _shape(one.get("shape")))
        for one in told[:64]
        if isinstance(one, Mapping) and isinstance(one.get("name"), str) and isinstance(one.get("datatype"), str)
    )


def _shape(told: object) -> tuple[int, ...]:
    """Dimensions as whole numbers; what may vary, and what is absurd, is 1."""
    if not isinstance(told, Sequence) or isinstance(told, str):
        return (1,)
    shape = []
    for one in told[:16]:
        try:
            size = int(one)
        except (TypeError, ValueError):
            size = 1
        shape.append(size if 0 < size <= _MOST else 1)
    return tuple(shape) if prod(shape) <= _MOST else tuple(1 for _ in shape)


def _json(tensor: Tensor, data: list[object] | None) -> dict[str, object]:
    found: dict[str, object] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
    return found if data is None else {**found, "data": data}


def _zero(tensor: Tensor) -> object:
    return _ZEROS.get(tensor.datatype, 0)
