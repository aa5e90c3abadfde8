"""What a benchmark says: a claim, what was measured, and the bound it has to keep."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured claim.

    Attributes:
        claim: In words.
        measured: The value in ``unit``.
        bound: The value may not be above this.
        unit: "x" for a ratio.
        detail: What the ratio was made of.
    """

    claim: str
    measured: float
    bound: float
    unit: str
    detail: str

    @property
    def holds(self) -> bool:
        """True where the bound is kept."""
        return self.measured <= self.bound

    def __str__(self) -> str:
        verdict = "ok  " if self.holds else "OVER"
        return f"{verdict} {self.measured:9.2f} {self.unit:<6} (bound {self.bound:g})  {self.claim}: {self.detail}"


def median(values: list[float]) -> float:
    """The middle value; of an even count the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
