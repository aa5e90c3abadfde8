"""The first lines of Overview: is it serving, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.strip import Strip

from console.domain.telemetry.sample import ServerSample
from console.domain.words import figures as form
from console.tui.panels.panel import clip, text
from console.tui.panels.picture import Picture, Told
from console.tui.theme import Look
from console.tui.widgets.strip import both_ends, line

_ROLES = {"ready": "good", "starting": "warn", "not ready": "warn", "restarting": "warn", "restricted": "warn"}


class Status:
    """Servers in words, then problems, then advice."""

    id = "status"
    title = "STATUS"

    def lines_wanted(self, picture: Picture) -> int:
        """The servers' line, and one for each thing that is wrong or could be better, four in all at most."""
        return min(1 + max(len(_worries(picture)), 1), 4)

    def draw(self, picture: Picture, width: int, height: int, look: Look, *, chosen: bool) -> list[Strip]:
        """See ``Panel``."""
        right = [text(look, f" {picture.subject}  last {_seconds(picture.chosen.seconds)} ", "dim")]
        lines = [both_ends(_servers(picture, look), right, width)]
        worries = _worries(picture)
        if not worries:
            calm = "nothing is wrong" if picture.sample is not None else ""
            lines.append(line([text(look, calm, "dim")], width))
        for number, (role, words) in enumerate(worries):
            if len(lines) == height - 1 and len(worries) - number > 1:
                lines.append(line([text(look, f"and {len(worries) - number} more", role)], width))
                break
            sign = "!! " if role == "bad" else "!  "
            lines.append(line([text(look, sign, role), clip(look, words, width - 3, role)], width))
        return lines[:height]

    def figures(self, picture: Picture) -> Sequence[Told]:
        """States, problems and advice."""
        servers = picture.sample.servers if picture.sample is not None else ()
        return [
            *(Told(f"Triton {server.name}", server.state, "", _server(server, picture.now)) for server in servers),
            *(
                Told("problem" if role == "bad" else "advice", words, "", words)
                for role, words in _worries(picture)
            ),
        ]

    def explain(self, picture: Picture) -> str:
        """See ``Panel``."""
        worries = _worries(picture)
        return worries[0][1] if worries else "states as Triton and systemd or Docker tell them"


def _servers(picture: Picture, look: Look) -> list[Segment]:
    sample = picture.sample
    if sample is None:
        words = picture.link.words if picture.link is not None else "not connected"
        return [text(look, words, "warn")]
    if not sample.servers:
        return [text(look, f"no Triton server: {picture.reason('/servers')}", "warn")]
    found: list[Segment] = []
    for server in sample.servers[:3]:
        role = _ROLES.get(server.state, "bad") if picture.live else "dim"
        found += [
            Segment(look.symbols.dot, look[role]),
            text(look, f" Triton {server.name} ", "strong" if picture.live else "dim"),
            text(look, server.state, role),
            text(look, f"  {_server(server, picture.now)}   ", "dim"),
        ]
    if len(sample.servers) > 3:
        found.append(text(look, f"and {len(sample.servers) - 3} more", "dim"))
    return found


def _server(server: ServerSample, now: float) -> str:
    parts = []
    if server.models_total is not None:
        parts.append(f"{server.models_ready or 0} of {server.models_total} models ready")
    if server.version:
        parts.append(server.version)
    if server.started is not None:
        parts.append(f"up {form.duration(max(now - server.started, 0))}")
    if server.restarts:
        parts.append(f"{server.restarts} restart{'s' if server.restarts > 1 else ''}")
    return ", ".join(parts)


def _worries(picture: Picture) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if not picture.live and picture.sample is not None and picture.link is not None:
        age = form.duration(max(picture.now - picture.sample.time, 0))
        found.append(("bad", f"{picture.link.words}; the figures below are {age} old"))
    found += [("bad", words) for words in picture.problems]
    return [*found, *(("warn", words) for words in picture.advice)]


def _seconds(value: float) -> str:
    return form.duration(value)
