"""How many lines of telemetry a droplet may send: more than are due ends its stream, for each costs time here."""

from __future__ import annotations

BURST = 300
"""Lines that may come at once, such as those that piled up while the line stood still."""
HASTE = 4.0
"""How many times as often as they are due lines may come in the long run."""


class Pace:
    """Counts the lines of one stream.

    Args:
        interval: Seconds between two lines as asked for.
        now: When the stream began, by the monotonic clock.
    """

    def __init__(self, interval: float, now: float) -> None:
        self._per_second = HASTE / interval
        self._last = now
        self._left = float(BURST)

    def allows(self, now: float) -> bool:
        """Count one line; False where it is one too many.

        However long nothing came (this program may have been suspended), all that was due since may come now.
        """
        due = (now - self._last) * self._per_second
        self._last = now
        self._left = max(self._left, min(self._left + due, BURST), due) - 1
        return self._left >= 0
