"""The firewall as it is meant (UFW's files) and as it is (the kernel's rules). Nothing here takes UFW's lock."""

from __future__ import annotations

from typing import Any

from remote_scripts.facts_parts.facts_part import NotThere, Part, assignments
from remote_scripts.files import cut

_PATIENCE = 5.0
_LIMIT = 192 << 10
"""Bytes of one family's rules that travel."""
_MAX_RULES = 2000
_TUPLE = "### tuple ###"
_KERNEL = (
    ("nft", ["nft", "list", "ruleset"]),
    ("iptables", ["iptables-save"]),
    ("ip6tables", ["ip6tables-save"]),
)
_LEGACY = (
    ("iptables_legacy", ["iptables-legacy-save"], "/proc/net/ip_tables_names"),
    ("ip6tables_legacy", ["ip6tables-legacy-save"], "/proc/net/ip6_tables_names"),
)


def read(part: Part) -> dict[str, Any]:
    """``ufw`` (or null where it is not installed) and the kernel's rules as their own tools print them."""
    found: dict[str, Any] = {"ufw": _ufw(part)}
    for key, command in _KERNEL:
        _save(part, found, key, command)
    for key, command, tables in _LEGACY:
        # Both kinds of tables filter side by side. Without a table in use the tool itself would load them.
        if part.text_or(tables, "").strip():
            _save(part, found, key, command)
    return found


def _ufw(part: Part) -> dict[str, Any] | None:
    try:
        conf = assignments(part.text("/etc/ufw/ufw.conf"))
    except OSError as error:
        if part.call.tool("ufw") is not None:
            part.miss("/ufw", f"/etc/ufw/ufw.conf cannot be read: {error.strerror}")
        return None
    defaults = assignments(part.text_or("/etc/default/ufw", ""))
    return {
        "enabled": conf.get("ENABLED", "no").lower() == "yes",
        "ipv6": defaults.get("IPV6", "no").lower() == "yes",
        "incoming": defaults.get("DEFAULT_INPUT_POLICY", ""),
        "outgoing": defaults.get("DEFAULT_OUTPUT_POLICY", ""),
        "routed": defaults.get("DEFAULT_FORWARD_POLICY", ""),
        "logging": conf.get("LOGLEVEL", ""),
        "rules": _tuples(part, "user.rules"),
        "rules6": _tuples(part, "user6.rules"),
    }


def _tuples(part: Part, name: str) -> list[str]:
    """The rules as UFW keeps them, in order, one text each: what follows "### tuple ###"."""
    for folder in ("/etc/ufw", "/lib/ufw", "/var/lib/ufw"):
        try:
            text = part.text(f"{folder}/{name}", 1 << 20)
        except FileNotFoundError:
            continue
        except OSError as error:
            part.miss(f"/ufw/{'rules6' if '6' in name else 'rules'}", f"{folder}/{name}: {error.strerror}")
            return []
        lines = (line.strip() for line in text.splitlines())
        return [cut(line[len(_TUPLE) :].strip()) for line in lines if line.startswith(_TUPLE)][:_MAX_RULES]
    return []


def _save(part: Part, found: dict[str, Any], key: str, command: list[str]) -> None:
    try:
        done = part.tool(command, _PATIENCE, _LIMIT)
    except NotThere as error:
        part.miss(f"/{key}", str(error))
        return
    if not done.ok:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        part.miss(f"/{key}", f"{command[0]}: {said[0] if said else f'exit status {done.status}'}")
        return
    found[key] = done.text
    if done.truncated:
        part.miss(f"/{key}", f"only the first {_LIMIT >> 10} KiB are here")
