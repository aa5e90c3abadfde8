"""Lists as files: what "export" writes for the fleet and for the events."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence

from console.domain.telemetry.encode import encode
from console.services.board import DropletView
from console.services.export import table
from console.services.happenings import Happening
from console.tui.widgets.rows import Column, Row


def table_document(columns: Sequence[Column], rows: Iterable[Row]) -> str:
    """A list's rows as CSV: figures as numbers, words as they are shown."""
    shown = [column for column in columns if column.key != "trend"]
    lines: list[Sequence[object]] = [[column.key for column in shown]]
    for row in rows:
        cells = [row.cells.get(column.key) for column in shown]
        lines.append(
            [
                None if cell is None else cell.order if isinstance(cell.order, float) else cell.text.strip()
                for cell in cells
            ]
        )
    return table(lines)


def samples_document(views: Iterable[DropletView]) -> str:
    """The samples behind the list: the document that ``status --json`` prints."""
    samples = [encode(view.sample) for view in views if view.sample is not None]
    return json.dumps({"schema": "status/1", "droplets": samples}, indent=1) + "\n"


def events_documents(happenings: Sequence[Happening]) -> Mapping[str, str]:
    """Events as CSV and as JSON, times in UTC."""
    fields = ("time", "droplet", "kind", "severity", "subject", "words")
    rows = [
        (
            datetime.datetime.fromtimestamp(one.time, datetime.timezone.utc).isoformat(timespec="seconds"),
            one.droplet,
            one.kind.value,
            one.severity.value,
            one.subject,
            one.words,
        )
        for one in happenings
    ]
    listed = [dict(zip(fields, row, strict=True)) for row in rows]
    return {
        "csv": table([fields, *rows]),
        "json": json.dumps({"schema": "events/1", "events": listed}, indent=1) + "\n",
    }
