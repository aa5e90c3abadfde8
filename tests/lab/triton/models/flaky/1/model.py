"""Fails as the input asks."""

import os
from typing import Any

import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]
from lab_tensors import read, respond  # type: ignore[import-not-found]

RAISE, ERROR, DIE = 1, 2, 3


def failed() -> Any:
    """An error response; an error that two responses share ends the whole server with signal 11."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError("flaky was asked to answer with an error"))


class TritonPythonModel:
    """INPUT says how to fail; 0 succeeds."""

    def execute(self, requests: list[Any]) -> list[Any]:
        """A raise fails every request of the batch, an error response only its own."""
        inputs = [read(request, "INPUT") for request in requests]
        if any(DIE in one for one in inputs):
            os._exit(1)
        if any(RAISE in one for one in inputs):
            raise RuntimeError("flaky was asked to raise")
        return [failed() if ERROR in one else respond("OUTPUT", one) for one in inputs]
