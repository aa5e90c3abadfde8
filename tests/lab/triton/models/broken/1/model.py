"""Cannot be loaded."""


class TritonPythonModel:
    """Fails where a real model fails for missing weights."""

    def initialize(self, args):
        """Raise as a missing file would."""
        raise FileNotFoundError("no such file: /models/broken/1/weights.bin")

    def execute(self, requests):
        """Never reached."""
        raise NotImplementedError
