"""What the exit status says (DESIGN.md 6)."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses, the same for every command."""

    DONE = 0
    NOT_WELL = 1
    """The answer is "not well": an invalid config, an error-level finding, a failed check."""
    USAGE = 2
    """The command line or the settings are wrong."""
    NO_CONNECTION = 3
    ROLLED_BACK = 4
    UNKNOWN_STATE = 5
    """The state is not known; what to do was said."""
    REFUSED = 6
    """Nothing changed: locked, stale, read-only, unsafe."""
    INTERRUPTED = 130


class UsageError(Exception):
    """The command line asks for something that cannot be; the message says what to do instead."""
