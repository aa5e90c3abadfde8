"""A Triton server on this droplet, as it is known from tick to tick."""

from __future__ import annotations

from dataclasses import dataclass, field

from remote_scripts.system.docker_store import Container
from remote_scripts.system.units import UnitState
from remote_scripts.triton.address import Endpoints
from remote_scripts.triton.flags import Flags
from remote_scripts.triton.poll import Poll


@dataclass(slots=True)
class Server:
    """One server, whether it runs or not.

    Attributes:
        name: stable for the stream: its unit without ``.service``, its container, or triton-<http port>.
        how: "unit", "docker" or "process".
        unit: the systemd unit, where there is one.
        container_id: the full id, where it runs in a container; ``container`` the name.
        pid: of the tritonserver, on the host; None while none runs.
        start: the process's start in clock ticks since boot: with the pid, its identity.
        process_state: the letter of /proc/PID/stat.
        started: of the process, Unix seconds.
        flags: None where its command line was never seen.
        listed: it was named in the request, and is asked though no process was found.
        ended: by the monotonic clock, when its process was found gone.
        unit_state: what systemd said last; ``unit_problem`` why it did not.
        doubt: something changed since systemd was asked.
        failed_starts: processes in a row that ended before they were ever ready.
        workers: processes of the same server that do not serve (ranks of an MPI start).
    """

    name: str
    how: str
    unit: str | None = None
    container: str | None = None
    container_id: str | None = None
    pid: int | None = None
    start: int = 0
    process_state: str = ""
    started: float | None = None
    flags: Flags | None = None
    endpoints: Endpoints | None = None
    listed: bool = False
    ended: float | None = None
    unit_state: UnitState | None = None
    unit_problem: str | None = None
    docker: Container | None = None
    doubt: bool = True
    failed_starts: int = 0
    workers: set[int] = field(default_factory=set)
    poll: Poll = field(default_factory=Poll)
