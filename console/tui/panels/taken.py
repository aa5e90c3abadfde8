"""What is taken along from Overview: its figures as the text of files."""

from __future__ import annotations

from collections.abc import Iterable

from console.services import export
from console.tui.panels.panel import Panel
from console.tui.panels.picture import Picture


def contents(picture: Picture, panels: Iterable[Panel]) -> dict[str, str]:
    """The history in the time shown as CSV, and everything as JSON, by file ending."""
    view, until = picture.view, picture.until
    since = until - picture.chosen.seconds
    model = picture.chosen.model
    figures = [
        {"panel": panel.id, "name": one.name, "value": one.value, "unit": one.unit, "why": one.why}
        for panel in panels
        for one in panel.figures(picture)
        if panel.id != "changes"
    ]
    return {
        "csv": export.table(export.history_table(view, since, until, model)),
        "json": export.document(view, since, until, picture.subject, figures, model, picture.sample),
    }
