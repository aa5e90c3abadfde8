"""`facts`: one look at the whole droplet, one JSON document (schema facts/1, docs/wire.md 2).

Each part is read by a module of its own, in a thread of its own, and fails by itself: what it could not read is
left out, and the reason stands in ``unavailable`` under the part's JSON Pointer.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from remote_scripts.call import Call, LineTooLong
from remote_scripts.facts_parts import (
    facts_cloud_init,
    facts_disks,
    facts_docker,
    facts_firewall,
    facts_gpu,
    facts_listeners,
    facts_os,
    facts_resolver,
    facts_triton,
    facts_units,
)
from remote_scripts.facts_parts.facts_part import Part, explain

SCHEMA = "facts/1"
PATIENCE = 15.0
"""Seconds for all parts together: each bounds its own tools, this bounds what hangs in the kernel."""

PARTS: dict[str, Callable[[Part], Any]] = {
    "os": facts_os.read_os,
    "kernel": facts_os.read_kernel,
    "machine": facts_os.read_machine,
    "python": facts_os.read_python,
    "cloud_init": facts_cloud_init.read,
    "gpu": facts_gpu.read,
    "docker": facts_docker.read,
    "units": facts_units.read,
    "listeners": facts_listeners.read,
    "firewall": facts_firewall.read,
    "resolver": facts_resolver.read,
    "disks": facts_disks.read,
    "triton": facts_triton.read,
}


def main(call: Call) -> None:
    """Read every part and send the document."""
    document: dict[str, Any] = {"schema": SCHEMA, "time": time.time(), "uid": os.geteuid()}
    unavailable: dict[str, str] = {}
    document.update(_read_all(call, unavailable))
    document["unavailable"] = unavailable
    try:
        call.emit(document)
    except LineTooLong:
        _shorten(document, unavailable)
        call.emit(document)


def _read_all(call: Call, unavailable: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    done = {name: Part(call, name) for name in PARTS}
    threads = [
        threading.Thread(target=_read, args=(part, PARTS[name], found), daemon=True) for name, part in done.items()
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    # A part that is late may still be writing: only what is there now is taken.
    taken = {name: found[name] for name in PARTS if name in found}
    for name, part in done.items():
        if name not in taken and part.finished is False:
            unavailable[f"/{name}"] = f"it was not read within {PATIENCE:g} s"
        else:
            unavailable.update(part.unavailable)
    return taken


def _read(part: Part, read: Callable[[Part], Any], found: dict[str, Any]) -> None:
    try:
        value = read(part)
    except Exception as error:  # whatever stops one part must not stop the others
        part.miss("", explain(error))
    else:
        found[part.name] = value
    part.finished = True


def _shorten(document: dict[str, Any], unavailable: dict[str, str]) -> None:
    """Leave the long texts out: what remains is bounded by the limits of each part."""
    for server in document.get("triton", []):
        for model in server["models"]:
            model.pop("config", None)
    for key in ("nft", "iptables", "ip6tables", "iptables_legacy", "ip6tables_legacy"):
        document.get("firewall", {}).pop(key, None)
    unavailable["/triton"] = "the configs are left out: all together they do not fit in one answer"
    unavailable["/firewall"] = "the kernel's rules are left out: they do not fit in the answer beside the rest"
    sys.stderr.write("facts: the long texts were left out\n")
