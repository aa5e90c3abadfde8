"""UFW's rules as it keeps them: the "### tuple ###" lines of user.rules (ufw 0.36, src/backend_iptables.py)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from console.domain.telemetry.text import printable

_ACTIONS = ("allow", "deny", "reject", "limit")


@dataclass(frozen=True, slots=True)
class UfwRule:
    """One rule.

    Attributes:
        action: "allow", "deny", "reject", "limit".
        protocol: "tcp", "udp", "any", or another that iptables knows.
        port: Destination: "22", "8000:8002", "80,443", "any"; ``source_port`` likewise.
        to: Destination address or network; ``source`` the source's.
        direction: "in" or "out"; ``interface`` the one it is bound to, None for all.
        routed: It is for forwarded packets.
        logged: "log" or "log-all", None without logging.
        app: The application profile it was made from, for the destination; ``source_app`` likewise.
        comment: Its text.
        raw: The line, without the mark: what a change compares.
    """

    action: str
    protocol: str
    port: str
    to: str
    source_port: str
    source: str
    direction: str
    interface: str | None = None
    routed: bool = False
    logged: str | None = None
    app: str | None = None
    source_app: str | None = None
    comment: str | None = None
    raw: str = ""


def read_rule(line: str) -> UfwRule | None:
    """The rule of one line, its mark taken off; None where it is no rule."""
    words = line.split()
    comment = None
    if words and words[-1].startswith("comment="):
        comment = _comment(words.pop()[len("comment=") :])
    if len(words) not in (7, 9):
        return None
    action, _, logged = words[0].partition("_")
    routed = action.startswith("route:")
    action = action.removeprefix("route:")
    direction, _, interface = words[-1].partition("_")
    if action not in _ACTIONS or direction not in ("in", "out"):
        return None
    apps = (
        [None if app == "-" else printable(unquote(app)) for app in words[6:8]] if len(words) == 9 else [None, None]
    )
    protocol, port, to, source_port, source = (printable(word) for word in words[1:6])
    return UfwRule(
        action=action,
        protocol=protocol,
        port=port,
        to=to,
        source_port=source_port,
        source=source,
        direction=direction,
        interface=printable(interface) or None,
        routed=routed,
        logged=printable(logged) or None,
        app=apps[0],
        source_app=apps[1],
        comment=comment,
        raw=printable(line),
    )


def _comment(text: str) -> str:
    """Comments stand in hexadecimal."""
    try:
        return printable(bytes.fromhex(text).decode("utf-8", "replace"))
    except ValueError:
        return printable(text)
