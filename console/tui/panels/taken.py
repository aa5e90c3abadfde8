"""What is taken along from Overview: its figures as files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from console.services import export
from console.tui.panels.panel import Panel
from console.tui.panels.picture import Picture


def files(picture: Picture, panels: Iterable[Panel], now: float) -> list[Path]:
    """Write the history as CSV and everything as JSON into the current folder.

    Raises:
        OSError: They cannot be written.
    """
    view, until = picture.view, picture.until
    since = until - picture.chosen.seconds
    model = picture.chosen.model
    figures = [
        {"panel": panel.id, "name": one.name, "value": one.value, "unit": one.unit, "why": one.why}
        for panel in panels
        for one in panel.figures(picture)
        if panel.id != "changes"
    ]
    contents = {
        "csv": export.table(export.history_table(view, since, until, model)),
        "json": export.document(view, since, until, picture.subject, figures, model, picture.sample),
    }
    return export.write(Path.cwd(), view.name, now, contents)
