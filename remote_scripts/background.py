"""One question at a time that may take long, asked beside the ticks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Background(Generic[Result]):
    """Runs a function in a daemon thread; at most one at a time."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._box: list[Result | Exception] = []

    @property
    def busy(self) -> bool:
        """A question was asked and its answer not taken yet."""
        return self._thread is not None

    def ask(self, question: Callable[[], Result]) -> None:
        """Start ``question``; nothing happens while another is under way."""
        if self._thread is not None:
            return
        box: list[Result | Exception] = []

        def work() -> None:
            try:
                box.append(question())
            except Exception as error:
                box.append(error)

        self._box = box
        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def take(self, wait: float = 0.0) -> Result | Exception | None:
        """The answer, or the exception that was raised; None while there is none.

        Args:
            wait: seconds to wait for it at most.
        """
        if self._thread is None:
            return None
        self._thread.join(wait)
        if self._thread.is_alive():
            return None
        self._thread = None
        return self._box[0] if self._box else RuntimeError("the question was not finished")
