"""A model of the practice droplet's real Triton: it takes a known time for a batch, and computes nothing.

This file is copied into the model repository and runs in the Python backend: the standard library, and what the
backend gives.
"""

import json
import os
import time
from typing import Any

import triton_python_backend_utils as backend  # type: ignore[import-not-found]


class TritonPythonModel:
    """Sleeps base + item x batch, and answers with its input."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the times; fail where the GPU's memory is said to be taken."""
        parameters = json.loads(args["model_config"])["parameters"]
        values = {key: value["string_value"] for key, value in parameters.items()}
        self.base_s, self.item_s = float(values["base_s"]), float(values["item_s"])
        self.slower = values["slower"]
        time.sleep(float(values["load_s"]))
        if os.path.exists(values["full"]):  # noqa: PTH110 - nothing more is imported here
            raise RuntimeError("simulated: CUDA out of memory, 30 GiB are held by a process that has ended")

    def execute(self, requests: list[Any]) -> list[Any]:
        """One sleep for all of them; a negative input fails the whole execution, as a crash of the kernel would."""
        inputs = [backend.get_input_tensor_by_name(request, "INPUT").as_numpy() for request in requests]
        time.sleep((self.base_s + self.item_s * sum(len(one) for one in inputs)) * self._slower())
        if any((one < 0).any() for one in inputs):
            raise RuntimeError("simulated: an illegal memory access was encountered")
        return [backend.InferenceResponse([backend.Tensor("OUTPUT", one)]) for one in inputs]

    def _slower(self) -> float:
        try:
            with open(self.slower, encoding="ascii") as file:  # noqa: PTH123
                return float(file.read() or 1)
        except (OSError, ValueError):
            return 1.0
