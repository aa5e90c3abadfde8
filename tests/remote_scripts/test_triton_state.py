from __future__ import annotations

import pytest

from remote_scripts.system.docker_store import Container
from remote_scripts.system.units import UnitState
from remote_scripts.triton.address import Endpoint, Endpoints
from remote_scripts.triton.loopback import Answer
from remote_scripts.triton.poll import Reading
from remote_scripts.triton.server import Server
from remote_scripts.triton.state import container_down, state_of, unit_down
from remote_scripts.triton.stats import IndexEntry


def server(health: Answer | None, **more: object) -> Server:
    http = Endpoint(("127.0.0.1", 8000), "127.0.0.1:8000")
    found = Server("triton", "process", pid=10, endpoints=Endpoints(http, None, None))
    found.poll.reading = Reading(health=health)
    for key, value in more.items():
        setattr(found, key, value)
    return found


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (Answer(200), "ready"),
        (Answer(400), "not ready"),
        (Answer(503), "not ready"),
        (Answer(403, b'{"error":"This API is restricted, expecting header \'k\'"}'), "restricted"),
        (Answer(404), "unreachable"),
        (Answer(0, failure="refused", reason="connection refused"), "starting"),
        (Answer(0, failure="timeout", reason="no answer in time"), "unreachable"),
        (Answer(0, failure="broken", reason="what listens there does not speak HTTP"), "unreachable"),
        (None, "unreachable"),
    ],
)
def test_the_state_by_the_answer(answer: Answer | None, state: str) -> None:
    found, reason = state_of(server(answer))
    assert found == state
    assert (reason is None) == (state == "ready")


def test_a_server_that_served_and_refuses_is_leaving() -> None:
    found = server(Answer(0, failure="refused"))
    found.poll.was_ready = True
    assert state_of(found)[0] == "not ready"


def test_starts_that_never_came_to_anything_are_a_loop() -> None:
    found = server(Answer(0, failure="refused"), failed_starts=2)
    assert state_of(found)[0] == "restarting"


@pytest.mark.parametrize(
    ("restarts", "state"), [(0, "starting"), (1, "starting"), (2, "restarting"), (40, "restarting")]
)
def test_a_loop_is_told_at_first_sight_by_what_systemd_counted(restarts: int, state: str) -> None:
    found = server(Answer(0, failure="refused"), unit_state=unit("active", "running", restarts=restarts))
    told, reason = state_of(found)
    assert told == state
    assert reason is not None
    assert reason.endswith(f"yet, restart {restarts}" if restarts else "yet")


@pytest.mark.parametrize(("letter", "word"), [("T", "suspended"), ("D", "kernel"), ("S", "lives")])
def test_why_a_server_is_silent(letter: str, word: str) -> None:
    reason = state_of(server(Answer(0, failure="timeout"), process_state=letter))[1]
    assert reason is not None
    assert word in reason


def test_what_is_not_ready_is_named() -> None:
    found = server(Answer(400))
    found.poll.reading.index = {
        ("a", "1"): IndexEntry("LOADING", None),
        ("b", "1"): IndexEntry("UNAVAILABLE", "unloaded"),
        ("c", "1"): IndexEntry("UNAVAILABLE", "Internal: x"),
        ("d", "-"): IndexEntry("UNKNOWN", None),
        ("e", "1"): IndexEntry("READY", None),
    }
    assert state_of(found) == ("not ready", "a is LOADING, c is UNAVAILABLE")


def test_a_listed_server_that_nobody_runs() -> None:
    found = server(Answer(0, failure="refused"), pid=None, listed=True)
    assert state_of(found)[0] == "unreachable"


def unit(active: str, sub: str, **more: object) -> UnitState:
    values: dict[str, object] = {
        "load": "loaded",
        "result": "success",
        "restarts": 0,
        "exit_code": 0,
        "exit_status": 0,
        "pid": 0,
    }
    return UnitState(active=active, sub=sub, **{**values, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "expected", "words"),
    [
        (unit("inactive", "dead"), "stopped", "not started"),
        (unit("inactive", "dead", load="not-found"), "stopped", "gone"),
        (unit("inactive", "dead", load="masked"), "stopped", "masked"),
        (unit("failed", "failed", result="signal", exit_code=2, exit_status=9), "dead", "signal 9"),
        (unit("failed", "failed", result="core-dump", exit_code=3, exit_status=11), "dead", "signal 11"),
        (unit("failed", "failed", result="start-limit-hit"), "dead", "start-limit-hit"),
        (unit("failed", "failed", result="oom-kill"), "dead", "oom-kill"),
        (
            unit("activating", "auto-restart", result="exit-code", exit_code=1, exit_status=1, restarts=4),
            "restarting",
            "after exit status 1, restart 4",
        ),
        (unit("activating", "auto-restart-queued"), "restarting", "again"),
        (unit("activating", "start-pre"), "starting", "start-pre"),
        (unit("active", "running"), "starting", "no tritonserver runs in it yet"),
        (unit("active", "exited"), "dead", "no tritonserver runs"),
        (unit("deactivating", "stop-sigterm"), "stopped", "being stopped"),
    ],
)
def test_a_unit_in_which_none_runs(state: UnitState, expected: str, words: str) -> None:
    found, reason = unit_down(state)
    assert found == expected
    assert words in reason


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"exit_code": 0}, "stopped"),
        ({"exit_code": 143}, "stopped"),
        ({"exit_code": 1}, "dead"),
        ({"exit_code": 137, "oom_killed": True}, "dead"),
        ({"restarting": True, "exit_code": 1}, "restarting"),
        ({"running": True}, "starting"),
    ],
)
def test_a_container_in_which_none_runs(changes: dict[str, object], expected: str) -> None:
    values: dict[str, object] = {
        "id": "ab" * 32,
        "name": "triton",
        "running": False,
        "restarting": False,
        "oom_killed": False,
        "exit_code": 0,
        "restarts": 0,
        "policy": "always",
        "finished": "",
        "triton": True,
        "published": {},
    }
    container = Container(**{**values, **changes})  # type: ignore[arg-type]
    assert container_down(container)[0] == expected
