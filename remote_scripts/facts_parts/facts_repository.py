"""A server's model repositories: where they are, whether they can be changed from here, and the models in them.

Layout: server/docs/user_guide/model_repository.md. A repository in a bucket is read by Triton alone; it is named,
said to be read-only, and not looked into.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remote_scripts.call import Call
from remote_scripts.files import cut, read_bytes
from remote_scripts.system.docker_store import STORE

CONFIG_LIMIT = 128 << 10
"""Bytes of one config.pbtxt that travel; a longer one is named and left out."""
_CONFIGS_LIMIT = 1536 << 10
"""Bytes of all configs together, as JSON; the whole answer has 4 MiB."""
_MODELS_LIMIT = 2000
_BUCKETS = {"s3": "S3", "gs": "Google Cloud Storage", "as": "Azure Storage"}
_RESERVED = {"warmup", "initial_state", "configs"}
_VERSION = re.compile(r"[1-9][0-9]{0,18}")


class Budget:
    """How much of the models still fits in the answer."""

    def __init__(self) -> None:
        self.bytes = _CONFIGS_LIMIT
        self.models = _MODELS_LIMIT
        self.left_out = 0

    def take(self, text: str) -> bool:
        """Whether this text still fits; it is counted as JSON writes it."""
        size = len(json.dumps(text))
        if size > self.bytes:
            self.left_out += 1
            return False
        self.bytes -= size
        return True


@dataclass(slots=True)
class Repository:
    """One model repository.

    Attributes:
        path: As the server was told.
        kind: "local", or the bucket's ("s3", "gs", "as").
        folder: Where this script can read it; None for a bucket, or where it cannot.
        host_path: Where it lies on the droplet, for a server in a container: the mount's source.
        writable: Whether a change made on the droplet can reach it.
        problem: Why it is not read-write, or cannot be read; "" where all is well.
    """

    path: str
    kind: str = "local"
    folder: Path | None = None
    host_path: str | None = None
    writable: bool = False
    problem: str = ""

    def about(self) -> dict[str, Any]:
        """What travels."""
        found: dict[str, Any] = {"path": cut(self.path), "kind": self.kind, "writable": self.writable}
        if self.host_path is not None:
            found["host_path"] = cut(self.host_path)
        if self.problem:
            found["reason"] = cut(self.problem)
        return found


def flag_values(arguments: Sequence[str], *names: str) -> list[str]:
    """Every value of a flag, in both spellings (``--flag=value``, ``--flag value``)."""
    found = []
    for number, word in enumerate(arguments):
        flag, equals, value = word.partition("=")
        if flag.lstrip("-") in names and flag.startswith("--"):
            if equals:
                found.append(value)
            elif number + 1 < len(arguments):
                found.append(arguments[number + 1])
    return found


def open_repositories(call: Call, pid: int, container: str | None, arguments: Sequence[str]) -> list[Repository]:
    """The repositories that a server's command line names."""
    mounts = _mounts(call, container) if container else {}
    return [
        _open(call, pid, path, container, mounts)
        for path in flag_values(arguments, "model-repository", "model-store")
    ]


def _open(call: Call, pid: int, path: str, container: str | None, mounts: dict[str, str]) -> Repository:
    scheme, colon, _ = path.partition("://")
    if colon and scheme in _BUCKETS:
        reason = f"it is in a bucket ({_BUCKETS[scheme]}): it is read-only here, and changed there"
        return Repository(path, kind=scheme, problem=reason)
    repository = Repository(path)
    proc = f"/proc/{pid}"
    inside = path if path.startswith("/") else f"{_link(call, proc + '/cwd')}/{path}"
    repository.host_path = inside if container is None else _on_host(inside, mounts)
    # As the process itself sees it: a unit may have a mount namespace of its own.
    folder = call.resolve(f"{proc}/root") / inside.lstrip("/")
    if container is None and not os.access(folder, os.R_OK):
        folder = call.resolve(inside)
    try:
        os.scandir(folder).close()
    except OSError as error:
        repository.problem = f"{path} cannot be read: {error.strerror}"
        return repository
    repository.folder = folder
    if repository.host_path is None:
        repository.problem = "it lies inside the container, in no mount: a change would be lost with the container"
    elif not os.access(call.resolve(repository.host_path), os.W_OK):
        repository.problem = f"{repository.host_path} cannot be written"
    else:
        repository.writable = True
    return repository


def _link(call: Call, path: str) -> str:
    try:
        return os.readlink(call.resolve(path))  # noqa: PTH115 - text
    except OSError:
        return ""


def _mounts(call: Call, container: str) -> dict[str, str]:
    """A container's mounts, path inside to path on the droplet, by Docker's own store; empty where it has none."""
    try:
        config = json.loads(read_bytes(str(call.resolve(f"{STORE}/{container}/config.v2.json")), 4 << 20))
        points = config["MountPoints"].values()
        return {str(point["Destination"]): str(point["Source"]) for point in points if point.get("Source")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _on_host(inside: str, mounts: dict[str, str]) -> str | None:
    for destination in sorted(mounts, key=len, reverse=True):
        if inside == destination or inside.startswith(destination.rstrip("/") + "/"):
            return mounts[destination].rstrip("/") + inside[len(destination.rstrip("/")) :]
    return None


def read_models(repository: Repository, number: int, config_name: str, budget: Budget) -> dict[str, dict[str, Any]]:
    """The models in a repository, by name.

    Args:
        repository: Where to look.
        number: Its place on the command line.
        config_name: The value of ``--model-config-name``; "" without it.
        budget: What still fits in the answer.
    """
    if repository.folder is None:
        return {}
    found = {}
    try:
        names = sorted(entry.name for entry in os.scandir(repository.folder) if entry.is_dir())
    except OSError as error:
        repository.problem = f"{repository.path} cannot be read: {error.strerror}"
        return {}
    for name in names:
        if name.startswith("."):
            continue
        if budget.models <= 0:
            budget.left_out += 1
            continue
        budget.models -= 1
        found[name] = _model(repository.folder / name, cut(name), number, config_name, budget)
    return found


def _model(folder: Path, name: str, number: int, config_name: str, budget: Budget) -> dict[str, Any]:
    model: dict[str, Any] = {"name": name, "repository": number, "versions": [], "misplaced": []}
    try:
        entries = sorted(entry.name for entry in folder.iterdir())[:1000]
    except OSError as error:
        model["config_reason"] = f"{folder.name} cannot be read: {error.strerror}"
        return model
    for entry in entries:
        if (folder / entry).is_dir() and entry not in _RESERVED:
            if _VERSION.fullmatch(entry):
                model["versions"].append(entry)
            if (folder / entry / "config.pbtxt").exists():
                model["misplaced"].append(f"{cut(entry)}/config.pbtxt")  # Triton ignores it without a word
    named = f"configs/{config_name}.pbtxt"
    file = named if config_name and (folder / named).exists() else "config.pbtxt"
    _config(folder, file, model, budget)
    return model


def _config(folder: Path, file: str, model: dict[str, Any], budget: Budget) -> None:
    path = folder / file
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise OSError(0, "it is no plain file")
        data = read_bytes(str(path), CONFIG_LIMIT + 1)
    except FileNotFoundError:
        model["config_reason"] = "there is no config.pbtxt: Triton completes the config by itself"
        return
    except OSError as error:
        model["config_reason"] = f"{file} cannot be read: {error.strerror}"
        return
    model["config_file"] = file
    if len(data) > CONFIG_LIMIT:
        model["config_reason"] = f"{file} is longer than {CONFIG_LIMIT >> 10} KiB"
        return
    model["config_sha256"] = hashlib.sha256(data).hexdigest()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        model["config_reason"] = f"{file} is not UTF-8: byte 0x{data[error.start]:02x} at {error.start}"
        return
    if budget.take(text):
        model["config"] = text
    else:
        model["config_reason"] = "it is left out: the answer is long enough"
