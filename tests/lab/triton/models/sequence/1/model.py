"""A running sum per sequence."""

from typing import Any

import numpy as np
from lab_tensors import number, respond  # type: ignore[import-not-found]


class TritonPythonModel:
    """OUTPUT is the sum of the sequence's inputs so far."""

    def initialize(self, args: dict[str, str]) -> None:
        """No sequence has begun."""
        self.sums: dict[int, int] = {}

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response per request, in its sequence's state."""
        responses = []
        for request in requests:
            sequence = number(request, "CORRID")
            before = 0 if number(request, "START") else self.sums.get(sequence, 0)
            self.sums[sequence] = before + number(request, "INPUT")
            responses.append(respond("OUTPUT", np.array([[self.sums[sequence]]], dtype=np.int32)))
        return responses
