"""systemd units: which one a process belongs to, and what systemd says about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from remote_scripts.call import Call
from remote_scripts.files import read_bytes

PROPERTIES = "Id,LoadState,ActiveState,SubState,Result,NRestarts,ExecMainCode,ExecMainStatus,MainPID"
UNIT = re.compile(r"[\w:.\\@-]{1,255}\.service", re.ASCII)
SHELLS = re.compile(
    r"(?:ssh|sshd|dropbear|cron|crond|atd|docker|containerd|podman|rc-local|(?:ssh|sshd|user|getty|serial-getty|"
    r"console-getty|systemd-nspawn)@[^/]*)\.service"
)
"""Units whose processes are other people's: what someone starts by hand over SSH without a session of logind's
stays in the cgroup of the sshd."""


@dataclass(frozen=True, slots=True)
class UnitState:
    """What systemd says about a unit (systemctl(1), systemd.service(5))."""

    load: str
    active: str
    sub: str
    result: str
    restarts: int
    exit_code: int
    exit_status: int
    pid: int


def unit_of(cgroup: str) -> str | None:
    """The service that a process belongs to by the text of its /proc/PID/cgroup; None outside of one."""
    for line in cgroup.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers not in ("", "name=systemd"):
            continue
        if "/user@" in path:
            return None  # a unit of a user's own manager, which is not asked
        for part in reversed(path.split("/")):
            if part.endswith(".scope"):
                return None
            if UNIT.fullmatch(part):
                return None if SHELLS.fullmatch(part) else part
    return None


def show(call: Call, units: Sequence[str], timeout: float) -> dict[str, UnitState]:
    """Asks systemd about units; those that it did not answer for are missing.

    Raises:
        OSError: systemctl is not there, or failed; the text says how.
    """
    known = [unit for unit in units if UNIT.fullmatch(unit)]
    if not known:
        return {}
    done = call.run(["systemctl", "show", "--no-pager", "-p", PROPERTIES, "--", *known], timeout)
    if done.timed_out:
        raise OSError(f"systemctl did not answer within {timeout:g} s")
    states = parse_show(done.text)
    if not states and not done.ok:
        raise OSError((done.stderr.decode("utf-8", "replace").strip() or f"exit status {done.status}")[:300])
    return states


def parse_show(text: str) -> dict[str, UnitState]:
    """The output of ``systemctl show`` for several units: blocks of ``Key=value`` with an empty line in between."""
    states: dict[str, UnitState] = {}
    for block in text.split("\n\n"):
        values: dict[str, str] = {}
        for line in block.splitlines():
            key, equals, value = line.partition("=")
            if equals:
                values[key] = value
        if values.get("Id"):
            states[values["Id"]] = UnitState(
                load=values.get("LoadState", ""),
                active=values.get("ActiveState", ""),
                sub=values.get("SubState", ""),
                result=values.get("Result", ""),
                restarts=_whole(values, "NRestarts"),
                exit_code=_whole(values, "ExecMainCode"),
                exit_status=_whole(values, "ExecMainStatus"),
                pid=_whole(values, "MainPID"),
            )
    return states


def read_cgroup(proc: str, pid: int) -> str:
    """The text of /proc/PID/cgroup; "" where it cannot be read."""
    try:
        return read_bytes(f"{proc}/{pid}/cgroup").decode("utf-8", "replace")
    except OSError:
        return ""


def _whole(values: Mapping[str, str], key: str) -> int:
    text = values.get(key, "")
    return int(text) if text.isdecimal() and len(text) < 12 else 0
