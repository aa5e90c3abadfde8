"""Which systemd units run Triton, by their files: also those that do not run now."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from remote_scripts.call import Call
from remote_scripts.files import read_text
from remote_scripts.system.units import SHELLS, UNIT

OWN_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/run/systemd/transient")
"""Where units of this machine's own lie: few files, read at once."""
PACKAGE_FOLDERS = ("/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
"""Where packages put theirs: hundreds."""
_FILE_LIMIT = 64 << 10
_FOLDER_LIMIT = 2000
_NAMED = re.compile(r"(?:nvidia-)?triton(?:-?(?:inference-?)?server)?\.service")
_ENGINES = {"docker", "podman", "nerdctl"}


class UnitFiles:
    """Which units look like Triton: by their name, or because a command of theirs starts it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._folders: dict[str, tuple[dict[str, int], dict[str, str]]] = {}

    def look(self, *, everywhere: bool) -> dict[str, str]:
        """The units, each with the name of the container that it starts, or "".

        Args:
            everywhere: also where packages put units; otherwise those are as last seen.
        """
        found: dict[str, str] = {}
        folders = [*OWN_FOLDERS, *PACKAGE_FOLDERS] if everywhere else OWN_FOLDERS
        for folder in folders:
            self._look_into(folder)
        for folder in (*OWN_FOLDERS, *PACKAGE_FOLDERS):
            for unit, container in self._folders.get(folder, ({}, {}))[1].items():
                found.setdefault(unit, container)
        return found

    def _look_into(self, folder: str) -> None:
        path = str(self._call.resolve(folder))
        try:
            with os.scandir(path) as entries:
                names = [entry.name for entry, _ in zip(entries, range(_FOLDER_LIMIT), strict=False)]
            times = _times(path, names)
        except OSError:
            self._folders.pop(folder, None)
            return
        known = self._folders.get(folder)
        if known is not None and known[0] == times:
            return
        found: dict[str, str] = {}
        for name in names:
            if UNIT.fullmatch(name) and "@" not in name and not SHELLS.fullmatch(name):
                text = _unit_text(path, name, names)
                commands = exec_start(text)
                if _NAMED.fullmatch(name) or any("tritonserver" in command for command in commands):
                    found[name] = container_name(commands)
        self._folders[folder] = times, found


def _times(path: str, names: Sequence[str]) -> dict[str, int]:
    """When each unit and each folder of drop-ins was changed last."""
    times = {}
    for name in names:
        if name.endswith((".service", ".service.d")):
            try:
                times[name] = os.stat(f"{path}/{name}").st_mtime_ns  # noqa: PTH116 - hundreds of them
            except OSError:
                times[name] = 0  # a link that leads nowhere
    return times


def _unit_text(path: str, name: str, names: Sequence[str]) -> str:
    files = [f"{path}/{name}"]
    if f"{name}.d" in names:
        try:
            files += sorted(str(file) for file in Path(path, f"{name}.d").iterdir())[:32]
        except OSError:
            files = files[:1]
    parts = []
    for file in files:
        try:
            parts.append(read_text(file, _FILE_LIMIT))
        except OSError:
            continue  # masked, or not readable: its name may still tell
    return "\n".join(parts)


def exec_start(unit: str) -> list[str]:
    """The ExecStart lines of a unit's text, continued lines joined."""
    lines = unit.replace("\\\n", " ").splitlines()
    pairs = (line.strip().partition("=") for line in lines)
    return [value.strip() for key, _, value in pairs if key.strip() == "ExecStart"]


def container_name(commands: Sequence[str]) -> str:
    """The container that the last ``docker run`` of these commands names; "" where there is none."""
    import shlex  # only where a unit of this kind is there

    found = ""
    for command in commands:
        try:
            words = shlex.split(command)
        except ValueError:
            words = command.split()
        if "run" not in words or not any(word.rsplit("/", 1)[-1].lstrip("@-:+!") in _ENGINES for word in words[:3]):
            continue
        for at, word in enumerate(words):
            if word.startswith("--name="):
                found = word[7:]
            elif word == "--name" and at + 1 < len(words):
                found = words[at + 1]
    return found
