"""What is wrong with the settings, each mistake with its place in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake.

    Attributes:
        file: As the person named it.
        line: From 1; None where the file as a whole is meant (missing, unreadable).
        column: From 1.
        key: The key's path ("droplets.gpu-1.port"), empty for the file as a whole.
        message: What is wrong and what to do; never the value of a secret.
    """

    file: str
    line: int | None
    column: int | None
    key: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class SettingsError(Exception):
    """The settings cannot be used; ``mistakes`` holds all of them, in the order of the file."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))
