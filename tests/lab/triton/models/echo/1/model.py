"""Answers with its input."""

from lab_tensors import read, respond


class TritonPythonModel:
    """OUTPUT is INPUT."""

    def execute(self, requests):
        """One response per request."""
        return [respond("OUTPUT", read(request, "INPUT")) for request in requests]
