"""Docker: whether it runs, how a container gets a GPU from it, and its containers."""

from __future__ import annotations

import json
from typing import Any

from remote_scripts.facts_parts.facts_part import NotThere, Part, complaint, explain, mapping
from remote_scripts.files import cut

_PATIENCE = 5.0
_MAX_CONTAINERS = 200
_CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")


def read(part: Part) -> dict[str, Any]:
    """``installed``, ``running``, ``gpu``, ``daemon_json``; where it runs, its own account and its containers."""
    found: dict[str, Any] = {
        "installed": part.call.tool("docker") is not None or part.call.tool("dockerd") is not None
    }
    found["gpu"] = _gpu(part)
    text = part.text_or("/etc/docker/daemon.json", "")
    if text:
        found["daemon_json"] = text
    found["running"] = _runs(part)
    if not found["running"]:
        # Asking it would start it, where its socket is systemd's.
        part.miss("/version", "Docker does not run" if found["installed"] else "Docker is not installed")
        return found
    try:
        info = mapping(part.output(["docker", "info", "--format", "{{json .}}"], _PATIENCE))
    except (NotThere, ValueError) as error:
        part.miss("/version", explain(error))
        return found
    if not info.get("ServerVersion"):
        # The client answers for itself, with status 0, where the daemon does not answer it.
        errors = info.get("ServerErrors")
        part.miss(
            "/version", str(errors[0]) if isinstance(errors, list) and errors else "the daemon does not answer"
        )
        return found
    _take_info(info, found)
    try:
        found["containers"] = _containers(part)
    except (NotThere, ValueError) as error:
        part.miss("/containers", explain(error))
    return found


def _runs(part: Part) -> bool:
    for file in ("/run/docker.pid", "/var/run/docker.pid"):
        pid = part.text_or(file, "", 32).strip()
        if pid.isdecimal() and part.exists(f"/proc/{pid}"):
            return True
    return False


def _gpu(part: Part) -> dict[str, Any]:
    """What lets a container have a GPU: NVIDIA's container toolkit, and CDI specifications."""
    found: dict[str, Any] = {
        "runtime_installed": part.call.tool("nvidia-container-runtime") is not None,
        "cdi": [f"{folder}/{name}" for folder in _CDI_FOLDERS for name in part.names(folder, 32)],
    }
    try:
        done = part.tool(["nvidia-ctk", "--version"], 3.0, 4096)
        found["toolkit"] = (
            cut(done.text.strip().splitlines()[0]) if done.ok and done.text.strip() else complaint(done)
        )
    except NotThere as error:
        part.miss("/gpu/toolkit", str(error))
    return found


def _take_info(info: dict[str, object], found: dict[str, Any]) -> None:
    runtimes = info.get("Runtimes")
    found["version"] = cut(str(info.get("ServerVersion") or ""))
    found["runtimes"] = sorted(cut(name) for name in runtimes)[:32] if isinstance(runtimes, dict) else []
    found["default_runtime"] = cut(str(info.get("DefaultRuntime") or ""))
    found["live_restore"] = info.get("LiveRestoreEnabled") is True
    found["cgroup_driver"] = cut(str(info.get("CgroupDriver") or ""))
    found["root"] = cut(str(info.get("DockerRootDir") or ""))


def _containers(part: Part) -> list[dict[str, str]]:
    """All of them, running or not, as ``docker ps`` has them."""
    text = part.output(["docker", "ps", "--all", "--no-trunc", "--format", "{{json .}}"], _PATIENCE, 1 << 20)
    found = []
    for line in text.splitlines()[:_MAX_CONTAINERS]:
        entry = json.loads(line)
        if isinstance(entry, dict):
            keys = (
                ("name", "Names"),
                ("image", "Image"),
                ("state", "State"),
                ("status", "Status"),
                ("ports", "Ports"),
            )
            found.append({key: cut(str(entry.get(theirs) or "")) for key, theirs in keys})
    return found
