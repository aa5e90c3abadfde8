"""In which state a Triton server is, and why that is said, from what was seen of it.

HTTP and gRPC open only after all start-up models have loaded: a refused connection while the process lives is a
server that starts, or one that is leaving if it served before (server/src/main.cc).
"""

from __future__ import annotations

from remote_scripts.system.docker_store import Container
from remote_scripts.system.units import UnitState
from remote_scripts.triton.address import Endpoint
from remote_scripts.triton.json import error_text
from remote_scripts.triton.loopback import Answer
from remote_scripts.triton.poll import Reading
from remote_scripts.triton.server import Server

LOOP = 2
"""Processes in a row that ended before they were ready: from then on it is a restart loop, not a start."""


def state_of(server: Server) -> tuple[str, str | None]:
    """The state (docs/wire.md 3) and its reason; no reason where it is ready."""
    if server.pid is None and not server.listed:
        return _down(server)
    if server.endpoints is None or server.endpoints.http is None:
        return _without_http(server)
    health = server.poll.reading.health
    if health is None:
        return "unreachable", "it was not asked yet"
    if health.failure == "refused":
        return _refused(server, server.endpoints.http)
    if health.failure == "timeout":
        return "unreachable", _silent(server)
    if health.failure:
        return "unreachable", health.reason
    return _answered(server, health)


def _answered(server: Server, health: Answer) -> tuple[str, str | None]:
    if health.status == 200:
        return "ready", None
    if health.status == 403:
        return "restricted", f"its health is restricted (403): {error_text(health.body) or 'a header is wanted'}"
    if health.status == 503:
        return "not ready", "it is shutting down"
    if health.status == 400:
        return "not ready", _what_is_not_ready(server.poll.reading)
    return "unreachable", f"it answers {health.status} when asked whether it is ready: this may not be Triton"


def _what_is_not_ready(reading: Reading) -> str:
    """With strict readiness, any version that is not READY and was not unloaded makes the server not ready."""
    waiting = [
        f"{name} is {entry.state}"
        for (name, _), entry in sorted((reading.index or {}).items())
        if entry.state not in ("READY", "UNKNOWN") and entry.reason != "unloaded"
    ]
    if not waiting:
        return "it says so (400) and names no model"
    more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""
    return ", ".join(waiting[:3]) + more


def _refused(server: Server, http: Endpoint) -> tuple[str, str | None]:
    port = http.address[1]
    if server.pid is None:
        return "unreachable", f"nothing listens on port {port}, and no Triton process was found"
    if server.poll.was_ready:
        return "not ready", f"it does not listen on port {port} any more: it is shutting down"
    if server.failed_starts >= LOOP:
        return "restarting", f"{server.failed_starts} starts in a row ended before it was ready"
    restarts = _restarts(server)
    waiting = f"its process lives and does not listen on port {port} yet"
    # Whoever looks for the first time has seen no start fail; systemd and Docker have.
    again = f", restart {restarts}" if restarts else ""
    return "restarting" if restarts >= LOOP else "starting", waiting + again


def _restarts(server: Server) -> int:
    if server.unit_state is not None:
        return server.unit_state.restarts
    return server.docker.restarts if server.docker is not None else 0


def _silent(server: Server) -> str:
    if server.pid is None:
        return "it does not answer in time"
    if server.process_state in ("T", "t"):
        return "its process is suspended (SIGSTOP, or a debugger)"
    if server.process_state == "D":
        return "its process waits in the kernel and cannot be interrupted (state D)"
    return "its process lives, but it does not answer in time"


def _without_http(server: Server) -> tuple[str, str | None]:
    if server.endpoints is None:
        return "unreachable", "its command line cannot be read"
    return "unreachable", "HTTP is off (--allow-http=false), and its state is told over HTTP"


def _down(server: Server) -> tuple[str, str | None]:
    # A unit that runs `docker run` knows more than the container, which is gone with --rm.
    if server.unit is not None:
        if server.unit_state is not None and not server.doubt:
            return unit_down(server.unit_state)
        return "unreachable", server.unit_problem or "it does not run; systemd has not said yet why"
    if server.docker is not None:
        return container_down(server.docker)
    if server.how == "docker":
        return "dead", "its container is gone"
    return "dead", "its process ended; nothing that is known of starts it again"


def unit_down(unit: UnitState) -> tuple[str, str]:
    """The state of a unit in which no tritonserver runs (systemctl(1), systemd's unit states)."""
    after = f"after {_ended(unit)}" if unit.result not in ("", "success") or unit.exit_status else "after its end"
    restarts = f", restart {unit.restarts}" if unit.restarts else ""
    if unit.load in ("masked", "bad-setting", "error"):
        return "stopped", f"its unit is {'masked' if unit.load == 'masked' else 'not valid'}"
    if unit.active == "activating" and unit.sub.startswith("auto-restart"):
        return "restarting", f"systemd is about to start it again {after}{restarts}"
    if unit.active == "activating":
        return "starting", f"its unit is at {unit.sub}{restarts}"
    if unit.active == "deactivating":
        return "stopped", "its unit is being stopped"
    if unit.active == "failed":
        return "dead", f"its unit failed: {_ended(unit)}"
    if unit.active == "inactive":
        return "stopped", "its unit is not started" if unit.load != "not-found" else "its unit is gone"
    if unit.sub == "exited":
        return "dead", "its unit has done its work, and no tritonserver runs"
    return "starting", f"its unit is active, and no tritonserver runs in it yet{restarts}"


def container_down(container: Container) -> tuple[str, str]:
    """The state of a container in which no tritonserver runs."""
    ended = f"exit status {container.exit_code}"
    if container.oom_killed:
        ended = "it ran out of memory"
    if container.restarting:
        return "restarting", f"Docker is about to start it again, restart {container.restarts}: {ended}"
    if container.running:
        return "starting", "its container is up, and no tritonserver runs in it yet"
    if container.exit_code in (0, 143) and not container.oom_killed:
        return "stopped", f"its container is stopped ({ended})"
    return "dead", f"its container ended: {ended}"


def _ended(unit: UnitState) -> str:
    # waitid's codes: 1 exited, 2 killed, 3 dumped (systemd's ExecMainCode).
    how = {1: "exit status", 2: "signal", 3: "signal"}.get(unit.exit_code)
    if unit.result in ("exit-code", "signal", "core-dump") and how:
        return f"{how} {unit.exit_status}"
    detail = f", {how} {unit.exit_status}" if how and unit.exit_status else ""
    return f"{unit.result or 'no result'}{detail}"
