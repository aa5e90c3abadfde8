"""What a screen shows, written to files that only their owner can read: CSV for tables, JSON for all of it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from console.domain.telemetry.encode import encode
from console.domain.telemetry.sample import Sample
from console.domain.telemetry.series import Series
from console.services.board import DropletView
from console.services.history import Of

SCHEMA = "overview/1"
_HISTORY = (
    "rps", "hit_rate", "mean_batch", "error_percent", "queue_ms", "compute_ms", "dram_percent",
    "utilization_percent", "memory_percent", "cpu_percent",
)  # fmt: skip
_OF_ALL = frozenset({"dram_percent", "utilization_percent", "memory_percent", "cpu_percent"})
"""Figures that no model has by itself."""


def write(folder: Path, name: str, now: float, contents: Mapping[str, str]) -> list[Path]:
    """Write files of one name with several endings.

    Args:
        folder: Where to.
        name: What they are of, such as the droplet; made fit for a file name.
        now: Unix seconds, for the name.
        contents: By ending ("csv", "json"): the text.

    Returns:
        Their paths. They are new: nothing is overwritten.

    Raises:
        OSError: They cannot be written.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "droplet"
    moment = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    for number in range(1000):
        stem = f"{plain}-{moment}" + (f"-{number}" if number else "")
        paths = [folder / f"{stem}.{ending}" for ending in contents]
        if not any(path.exists() or path.is_symlink() for path in paths):
            break
    for path, text in zip(paths, contents.values(), strict=True):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    return paths


def table(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV, the heading first; an absent figure is an empty cell.

    Text that a spreadsheet would take for a formula gets a quote before it: it may come from a droplet.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return text.getvalue()


def history_table(view: DropletView, since: float, until: float, of: Of = None) -> list[Sequence[object]]:
    """The figures over time, a row a tick: begin and end (Unix seconds), then each figure."""
    found: dict[float, dict[str, float | None]] = {}
    starts: dict[float, float] = {}
    for name in _HISTORY:
        series = view.series(name, None if name in _OF_ALL else of)
        if series is None:
            continue
        for start, end, value in _within(series, since, until):
            found.setdefault(end, {})[name] = value
            starts[end] = start
    return [
        ("begin", "end", *_HISTORY),
        *((starts[end], end, *(figures.get(name) for name in _HISTORY)) for end, figures in sorted(found.items())),
    ]


def document(
    view: DropletView,
    since: float,
    until: float,
    subject: str,
    figures: Sequence[Mapping[str, object]],
    of: Of = None,
    sample: Sample | None = None,
) -> str:
    """All of it as one JSON document.

    Args:
        view: The droplet.
        since: Begin of the time shown, Unix seconds.
        until: Its end.
        subject: Whose figures they are, in words.
        figures: As shown: panel, name, value, unit, why.
        of: The model whose history it is; None for all.
        sample: As shown.
    """
    rows = history_table(view, since, until, of)
    return json.dumps(
        {
            "schema": SCHEMA,
            "droplet": view.name,
            "begin": since,
            "end": until,
            "subject": subject,
            "figures": list(figures),
            "history": [dict(zip(rows[0], row, strict=True)) for row in rows[1:]],
            "happenings": [
                {"time": one.time, "kind": one.kind.value, "severity": one.severity.value, "subject": one.subject,
                 "words": one.words}
                for one in view.happenings
                if one.time <= until
            ],
            "sample": encode(sample) if sample is not None else None,
        },
        indent=1,
    )  # fmt: skip


def _within(series: Series, since: float, until: float) -> list[tuple[float, float, float | None]]:
    return [point for point in series.points(since) if point[1] <= until]


def _cell(value: object) -> object:
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return "" if value is None else value
