"""Sends a known number of responses at known times."""

import threading
import time
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]
from lab_tensors import number, respond  # type: ignore[import-not-found]


def answer(sender: Any, count: int, first_s: float, delay_s: float) -> None:
    """All the responses of one request, then the final flag."""
    for index in range(count):
        time.sleep(delay_s if index else first_s)
        sender.send(respond("OUTPUT", np.array([index], dtype=np.int32)))
    sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)


class TritonPythonModel:
    """One thread per request, so that requests overlap as they do in a real streaming model."""

    def initialize(self, args: dict[str, str]) -> None:
        """Remember the threads: they must end before the model does."""
        self.threads: list[threading.Thread] = []

    def execute(self, requests: list[Any]) -> None:
        """Return at once; the responses come from the threads."""
        self.threads = [thread for thread in self.threads if thread.is_alive()]
        for request in requests:
            count = number(request, "COUNT")
            first_s, delay_s = number(request, "FIRST_MS", 0) / 1000, number(request, "DELAY_MS", 0) / 1000
            thread = threading.Thread(target=answer, args=(request.get_response_sender(), count, first_s, delay_s))
            thread.start()
            self.threads.append(thread)

    def finalize(self) -> None:
        """Wait for what is still being sent."""
        for thread in self.threads:
            thread.join()
