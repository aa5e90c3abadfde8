"""Answers with its input."""

from typing import Any

from lab_tensors import read, respond  # type: ignore[import-not-found]


class TritonPythonModel:
    """OUTPUT is INPUT."""

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response per request."""
        return [respond("OUTPUT", read(request, "INPUT")) for request in requests]
