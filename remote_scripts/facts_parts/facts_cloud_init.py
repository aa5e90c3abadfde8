"""How far cloud-init is, from its own files: the command takes a second, and older ones have no JSON.

/run/cloud-init/status.json and result.json: cloud-init's documentation, "Reported status". Its exit status 2 (done,
with recoverable errors) is ``recoverable`` here.
"""

from __future__ import annotations

from typing import Any

from remote_scripts.facts_parts.facts_part import Part, mapping
from remote_scripts.files import cut

_RUN = "/run/cloud-init"
_STAGES = ("init-local", "init", "modules-config", "modules-final")


def read(part: Part) -> dict[str, Any]:
    """``status``, and as far as they are known ``stage``, ``errors``, ``recoverable`` and ``datasource``.

    The status is "not installed", "disabled", "not started", "running", "done" or "error".
    """
    installed = part.call.tool("cloud-init") is not None or part.exists(_RUN)
    if not installed:
        return {"status": "not installed"}
    if part.exists(f"{_RUN}/disabled") or part.exists("/etc/cloud/cloud-init.disabled"):
        return {"status": "disabled"}
    status = _v1(part, "status.json")
    result = _v1(part, "result.json")
    found: dict[str, Any] = {"status": "not started"}
    if result is not None:
        errors = result.get("errors")
        found["errors"] = [cut(str(error)) for error in errors[:20]] if isinstance(errors, list) else []
        found["status"] = "error" if found["errors"] else "done"
        found["datasource"] = cut(str(result.get("datasource") or ""))
    elif status is not None:
        found["status"] = "running"
        found["stage"] = cut(str(status.get("stage") or "between stages"))
    recoverable = _recoverable(status or {})
    if recoverable:
        found["recoverable"] = recoverable
    return found


def _v1(part: Part, name: str) -> dict[str, Any] | None:
    text = part.text_or(f"{_RUN}/{name}", "", 1 << 20)
    if not text.strip():
        return None
    value = mapping(text).get("v1")
    return value if isinstance(value, dict) else {}


def _recoverable(status: dict[str, Any]) -> list[str]:
    """Warnings and errors that cloud-init went on after, stage by stage."""
    found: list[str] = []
    for stage in _STAGES:
        entry = status.get(stage)
        kinds = entry.get("recoverable_errors") if isinstance(entry, dict) else None
        if isinstance(kinds, dict):
            for messages in kinds.values():
                found += [cut(str(message)) for message in messages] if isinstance(messages, list) else []
    return found[:20]
