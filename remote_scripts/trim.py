"""Making a document that does not fit in one line smaller, the least missed first."""

from __future__ import annotations

from typing import Any

from remote_scripts.files import pointer

LEVELS = 4
_TOO_LONG = "the droplet has more to tell than fits in one line"


def trim(document: dict[str, Any], level: int) -> None:
    """Take parts out of ``document``, with the reason in its ``unavailable``.

    Args:
        document: this tick's; changed in place.
        level: 1 takes the custom series, 2 the batch sizes too, 3 the reasons of models and GPUs, 4 the models.
    """
    unavailable = document.setdefault("unavailable", {})
    for name, server in document.get("servers", {}).items():
        at = pointer("servers", name)
        if level >= 4:
            server.pop("models", None)
            unavailable[f"{at}/models"] = _TOO_LONG
        if server.pop("series", None):
            unavailable[f"{at}/series"] = _TOO_LONG
        for model, versions in server.get("models", {}).items():
            for version, fields in versions.items():
                for key in ("series", "batches")[:level]:
                    if fields.pop(key, None) and level < 3:
                        unavailable[at + pointer("models", model, version, key)] = _TOO_LONG
    if level >= 3:
        document["unavailable"] = {
            place: reason for place, reason in unavailable.items() if place.count("/") <= 3 and len(place) < 600
        }
