"""Cannot be loaded."""

from typing import Any


class TritonPythonModel:
    """Fails where a real model fails for missing weights."""

    def initialize(self, args: dict[str, str]) -> None:
        """Raise as a missing file would."""
        raise FileNotFoundError("no such file: /models/broken/1/weights.bin")

    def execute(self, requests: list[Any]) -> list[Any]:
        """Never reached."""
        raise NotImplementedError
