"""Takes a known time per execution."""

import json
import time
from typing import Any

from lab_tensors import read, respond  # type: ignore[import-not-found]


class TritonPythonModel:
    """Sleeps base_ms + item_ms x batch, then answers with the input."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the curve from the model's parameters."""
        parameters = json.loads(args["model_config"])["parameters"]
        self.base_s = float(parameters["base_ms"]["string_value"]) / 1000
        self.item_s = float(parameters["item_ms"]["string_value"]) / 1000

    def execute(self, requests: list[Any]) -> list[Any]:
        """One sleep for the whole batch."""
        inputs = [read(request, "INPUT") for request in requests]
        time.sleep(self.base_s + self.item_s * sum(len(one) for one in inputs))
        return [respond("OUTPUT", one) for one in inputs]
