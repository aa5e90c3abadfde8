"""systemd: the state of the system, what failed, and the units that matter here."""

from __future__ import annotations

from typing import Any

from remote_scripts.facts_parts.facts_part import NotThere, Part, complaint, explain
from remote_scripts.files import cut
from remote_scripts.system.unit_files import UnitFiles

OF_INTEREST = (
    "ssh.service",
    "sshd.service",
    "ssh.socket",
    "ufw.service",
    "nftables.service",
    "firewalld.service",
    "systemd-resolved.service",
    "systemd-networkd.service",
    "docker.service",
    "docker.socket",
    "containerd.service",
    "nvidia-persistenced.service",
    "nvidia-fabricmanager.service",
    "nvidia-dcgm.service",
    "dcgm-exporter.service",
    "cloud-init.service",
    "cloud-final.service",
    "unattended-upgrades.service",
    "apt-daily.service",
    "apt-daily-upgrade.service",
)
_PROPERTIES = {
    "LoadState": "load",
    "ActiveState": "active",
    "SubState": "sub",
    "Result": "result",
    "UnitFileState": "enabled",
    "FragmentPath": "file",
    "NRestarts": "restarts",
    "MainPID": "pid",
    "NeedDaemonReload": "reload_needed",
}
_PATIENCE = 5.0
_MAX_FAILED = 100


def read(part: Part) -> dict[str, Any]:
    """``state`` ("running", "degraded", "starting", …), ``failed`` units, and ``units`` by name.

    A unit that systemd does not know is left out.
    """
    found: dict[str, Any] = {}
    state = part.tool(["systemctl", "is-system-running"], _PATIENCE, 4096)  # exits with 1 where it is degraded
    word = state.text.strip()
    if not word or word == "offline":
        raise NotThere(f"systemd does not run here: {complaint(state)}")
    found["state"] = cut(word)
    try:
        command = ["systemctl", "list-units", "--state=failed", "--plain", "--no-legend", "--no-pager"]
        lines = part.output(command, _PATIENCE).splitlines()
        found["failed"] = [cut(line.split()[0]) for line in lines[:_MAX_FAILED] if line.split()]
    except NotThere as error:
        part.miss("/failed", explain(error))
    triton = list(UnitFiles(part.call).look(everywhere=True))[:32]
    names = [*OF_INTEREST, *(unit for unit in triton if unit not in OF_INTEREST)]
    command = ["systemctl", "show", "--no-pager", "-p", ",".join(["Id", *_PROPERTIES]), "--", *names]
    found["units"] = _parse(part.output(command, _PATIENCE))
    return found


def _parse(text: str) -> dict[str, dict[str, Any]]:
    """``systemctl show`` of several units: blocks of ``Key=value`` with an empty line in between."""
    units: dict[str, dict[str, Any]] = {}
    for block in text.split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.splitlines())
        name = values.get("Id", "")
        if not name or values.get("LoadState") == "not-found":
            continue
        unit: dict[str, Any] = {ours: cut(values.get(theirs, "")) for theirs, ours in _PROPERTIES.items()}
        for key in ("restarts", "pid"):
            unit[key] = int(unit[key]) if unit[key].isdecimal() else 0
        unit["reload_needed"] = unit["reload_needed"] == "yes"
        units[cut(name)] = unit
    return units
