"""Docker's containers and their states, from Docker's own files.

/var/lib/docker/containers/ID/config.v2.json is Docker's own store (moby/daemon/container), written at each change
of a container's state; only root can read it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remote_scripts.call import Call
from remote_scripts.files import cut, read_bytes

STORE = "/var/lib/docker/containers"
_ID = re.compile(r"[0-9a-f]{64}")
_LIMIT = 4 << 20


@dataclass(frozen=True, slots=True)
class Container:
    """A Docker container.

    Attributes:
        policy: its restart policy: "no", "always", "unless-stopped", "on-failure".
        finished: RFC 3339, as Docker writes it; "" where it never ended.
        triton: its command or image starts a Triton server.
        published: TCP port inside to "host:port" on the droplet.
    """

    id: str
    name: str
    running: bool
    restarting: bool
    oom_killed: bool
    exit_code: int
    restarts: int
    policy: str
    finished: str
    triton: bool
    published: Mapping[int, str]


class DockerStore:
    """Docker's containers, each file read again only when it changed."""

    def __init__(self, call: Call) -> None:
        self._store = str(call.resolve(STORE))
        self._read: dict[str, tuple[int, Container | None]] = {}

    def get(self, identifier: str) -> Container | None:
        """One container; None where Docker's store is elsewhere, may not be read, or does not know it."""
        path = f"{self._store}/{identifier}/config.v2.json"
        try:
            changed = os.stat(path).st_mtime_ns  # noqa: PTH116 - at every tick
        except OSError:
            self._read.pop(identifier, None)
            return None
        known = self._read.get(identifier)
        if known is None or known[0] != changed:
            known = changed, _load(path, identifier)
            self._read[identifier] = known
        return known[1]

    def all(self) -> list[Container]:
        """Every container in Docker's store; none where it may not be read."""
        try:
            names = [name for name in os.listdir(self._store) if _ID.fullmatch(name)]  # noqa: PTH208 - names, no paths
        except OSError:
            return []
        for gone in self._read.keys() - set(names):
            del self._read[gone]
        return [found for name in names if (found := self.get(name)) is not None]


def _load(path: str, identifier: str) -> Container | None:
    try:
        config = json.loads(read_bytes(path, _LIMIT))
        policy = json.loads(read_bytes(f"{path.removesuffix('config.v2.json')}hostconfig.json", _LIMIT))
    except (OSError, ValueError, RecursionError):
        return None
    state = _mapping(config, "State")
    command = [config.get("Path"), *_list(config, "Args"), _mapping(config, "Config").get("Image")]
    return Container(
        id=identifier,
        name=cut(str(config.get("Name") or identifier[:12]).lstrip("/")),
        running=state.get("Running") is True,
        restarting=state.get("Restarting") is True,
        oom_killed=state.get("OOMKilled") is True,
        exit_code=_whole(state.get("ExitCode")),
        restarts=_whole(config.get("RestartCount")),
        policy=cut(str(_mapping(policy, "RestartPolicy").get("Name") or "no")),
        finished=_when(state.get("FinishedAt")),
        triton=any(isinstance(word, str) and "tritonserver" in word for word in command),
        published=_published(_mapping(_mapping(config, "NetworkSettings"), "Ports")),
    )


def _published(ports: Mapping[str, Any]) -> dict[int, str]:
    """From ``{"8000/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8000"}]}``."""
    found: dict[int, str] = {}
    for key in ports:
        port, _, protocol = key.partition("/")
        for binding in _list(ports, key):
            if protocol == "tcp" and port.isdecimal() and isinstance(binding, dict) and int(port) not in found:
                host = str(binding.get("HostIp") or "0.0.0.0")  # noqa: S104 - what Docker means by no address
                found[int(port)] = cut(f"{f'[{host}]' if ':' in host else host}:{binding.get('HostPort')}")
    return found


def _mapping(of: Any, key: str) -> Mapping[str, Any]:
    value = of.get(key) if isinstance(of, dict) else None
    return value if isinstance(value, dict) else {}


def _list(of: Mapping[str, Any], key: str) -> list[Any]:
    value = of.get(key)
    return value if isinstance(value, list) else []


def _whole(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0


def _when(value: object) -> str:
    # Docker writes the year 1 where there was no such moment.
    return value[:40] if isinstance(value, str) and not value.startswith("0001-") else ""
