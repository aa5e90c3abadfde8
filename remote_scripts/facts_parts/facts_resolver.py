"""How names are resolved: resolv.conf and whose it is, systemd-resolved's own account, glibc's order."""

from __future__ import annotations

import os
from typing import Any

from remote_scripts.facts_parts.facts_part import NotThere, Part
from remote_scripts.files import cut

_FILE = "/etc/resolv.conf"
_PATIENCE = 3.0
_MODES = {
    "/run/systemd/resolve/stub-resolv.conf": "stub",
    "/run/systemd/resolve/resolv.conf": "uplink",
    "/usr/lib/systemd/resolv.conf": "static",
    "/lib/systemd/resolv.conf": "static",
}
"""resolved's own names for them (org.freedesktop.resolve1, ResolvConfMode)."""


def read(part: Part) -> dict[str, Any]:
    """The file's ``mode``, ``link``, ``text`` and contents, resolved's status, and glibc's order and preference."""
    found: dict[str, Any] = {"mode": "missing"}
    path = part.call.resolve(_FILE)
    if path.is_symlink():
        link = os.readlink(path)  # noqa: PTH115 - the text as it stands, relative or not
        found["link"] = cut(link)
        found["mode"] = _MODES.get(os.path.normpath(os.path.join("/etc", link)), "foreign")  # noqa: PTH118
    try:
        text = part.text(_FILE)
    except OSError as error:
        found["mode"] = "missing"
        part.miss("/nameservers", f"{_FILE} cannot be read: {error.strerror}")
    else:
        found["mode"] = "foreign" if found["mode"] == "missing" else found["mode"]
        found["text"] = text
        found.update(_parse(text))
    found["hosts_order"] = _hosts_order(part.text_or("/etc/nsswitch.conf", ""))
    found["prefers_ipv4"] = _prefers_ipv4(part.text_or("/etc/gai.conf", ""))
    if part.exists("/run/systemd/resolve"):
        try:
            # With resolved dead this waits 25 s for D-Bus to start it.
            found["resolved"] = part.output(["resolvectl", "--no-pager", "status"], _PATIENCE, 1 << 16)
        except NotThere as error:
            part.miss("/resolved", str(error))
    else:
        part.miss("/resolved", "systemd-resolved does not run")
    return found


def _parse(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"nameservers": [], "search": [], "options": []}
    for line in text.splitlines():
        words = line.split()
        if len(words) < 2:
            continue
        if words[0] == "nameserver":
            found["nameservers"].append(cut(words[1]))
        elif words[0] in ("search", "domain"):
            found["search"] = [cut(word) for word in words[1:33]]  # the last one holds (resolv.conf(5))
        elif words[0] == "options":
            found["options"] += [cut(word) for word in words[1:33]]
    return {key: values[:32] for key, values in found.items()}


def _hosts_order(nsswitch: str) -> list[str]:
    for line in nsswitch.splitlines():
        key, _, rest = line.partition("#")[0].partition(":")
        if key.strip() == "hosts":
            return [cut(word) for word in rest.split()[:32]]
    return ["files", "dns"]  # glibc's own, where the file says nothing


def _prefers_ipv4(gai: str) -> bool:
    lines = (line.partition("#")[0].split() for line in gai.splitlines())
    return any(words[:3] == ["precedence", "::ffff:0:0/96", "100"] for words in lines)
