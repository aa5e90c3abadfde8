"""Why a login shell did not let a command through, told from what it said instead."""

from __future__ import annotations

import unicodedata

from console.remote.errors import FailureKind, RemoteError

# DigitalOcean's images force this command on root until cloud-init is done (facts/host.md 4).
_BOOTING = ("please wait while we get your droplet ready", "system is booting up", "not permitted to log in yet")
_EXPIRED = ("password has expired", "change your password", "you are required to change your password")
_LOCKED = ("account is currently not available", "account is not available", "nologin")


def printable(text: bytes | str, limit: int = 300) -> str:
    """One line that is safe to print, of words that came from a droplet."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    flat = " ".join(text.split())
    safe = "".join(c for c in flat if unicodedata.category(c)[0] != "C")
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def refused(host: str, output: bytes, complaints: bytes) -> RemoteError:
    """The error for a login shell that ended without running our command.

    Args:
        host: The droplet, for the message.
        output: What came on standard output.
        complaints: What came on standard error.
    """
    said = printable(output + b" " + complaints)
    low = said.lower()
    if any(text in low for text in _BOOTING):
        return RemoteError(
            FailureKind.STILL_BOOTING,
            f"{host} is still booting: {said}",
            hint="cloud-init is not done; it takes a minute or two on a new droplet",
            retry_after=10.0,
        )
    hint = (
        "log in by hand and look at what `sh -c true` does there; a forced command must run $SSH_ORIGINAL_COMMAND"
    )
    if any(text in low for text in _EXPIRED):
        hint = "log in with ssh once and set a new password"
    elif any(text in low for text in _LOCKED):
        hint = "this account has no login shell; log in as another user, or give it one with `chsh`"
    what = f"it said: {said}" if said else "it said nothing"
    return RemoteError(FailureKind.SHELL_REFUSED, f"{host}: the login shell ran no command; {what}", hint=hint)
