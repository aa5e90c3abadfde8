"""Takes its time to load."""

import json
import time
from typing import Any

from lab_tensors import read, respond  # type: ignore[import-not-found]


class TritonPythonModel:
    """Is an echo, once it is there."""

    def initialize(self, args: dict[str, str]) -> None:
        """Sleep as long as the parameter says."""
        time.sleep(float(json.loads(args["model_config"])["parameters"]["load_s"]["string_value"]))

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response per request."""
        return [respond("OUTPUT", read(request, "INPUT")) for request in requests]
