"""The ``servers`` branch of the document: every Triton server on this droplet, asked within the tick's time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from remote_scripts.background import Background
from remote_scripts.call import Call
from remote_scripts.system.units import UnitState, show
from remote_scripts.triton.branch import Budget, write_server
from remote_scripts.triton.find import SERVERS, Finder
from remote_scripts.triton.loopback import drive
from remote_scripts.triton.poll import Poll
from remote_scripts.triton.server import Server

PATIENCE = 0.4
"""Seconds that servers get to answer in one tick, all side by side."""
IMPATIENCE = 0.06
"""Seconds for one that did not answer the last time, so that a server that hangs does not hold up every tick."""
RETRY_EVERY = 5
"""Ticks after which such a one is given all the time again."""
_SYSTEMD_TIMEOUT = 5.0
_SYSTEMD_WAIT = 0.1
"""Seconds that a tick waits for systemd where a server is down and nothing is known yet."""
_SETTLED = ("inactive", "failed")


class TritonCollector:
    """Finds the servers, asks them, and writes what they say."""

    def __init__(self, call: Call, listed: Sequence[Mapping[str, Any]] = ()) -> None:
        self._call = call
        self._finder = Finder(call, listed)
        self._systemd: Background[dict[str, UnitState]] = Background()
        self._asked: list[Server] = []

    def look(self, *, tick: int, slow: bool) -> dict[int, str]:
        """Find the servers as they are now; their processes to their names."""
        self._finder.look(tick=tick, slow=slow, now=monotonic())
        if self._must_ask(tick, slow):
            self._ask_systemd()
        return self._finder.pids()

    def read(self, document: dict[str, Any], unavailable: dict[str, str], *, tick: int, slow: bool) -> None:
        """Ask every server, and fill ``document["servers"]``."""
        servers = list(self._finder.servers.values())
        self._poll(servers, tick, slow)
        self._hear_systemd(tick)
        document["servers"] = {}
        budget = Budget()
        for server in servers:
            write_server(server, document, unavailable, budget)
        if self._finder.left_out:
            unavailable["/servers"] = f"{self._finder.left_out} more servers are left out: {SERVERS} is the most"

    def _poll(self, servers: Sequence[Server], tick: int, slow: bool) -> None:
        asked = [
            (server.poll, server.endpoints, server.poll.reading.late and tick % RETRY_EVERY != 0)
            for server in servers
            if server.endpoints is not None and (server.pid is not None or server.listed)
        ]
        for hurried, patience in ((False, PATIENCE), (True, IMPATIENCE)):
            group = [(poll, endpoints) for poll, endpoints, late in asked if late is hurried]
            deadline = monotonic() + patience
            for begin in (Poll.begin, Poll.ask_configs):
                chains = [chain for poll, endpoints in group for chain in begin(poll, endpoints, slow=slow)]
                if chains:
                    drive(chains, deadline)

    def _must_ask(self, tick: int, slow: bool) -> bool:
        """Whether systemd is asked: only where its answer may be new, for it costs a process."""
        if self._systemd.busy:
            return False
        for server in self._finder.servers.values():
            if server.unit is None:
                continue
            state = server.unit_state
            if server.pid is None:
                unsettled = state.active not in _SETTLED if state is not None else server.unit_problem is None
                if server.doubt or slow or unsettled:
                    return True
            elif tick > 0 and server.doubt:
                return True
        return False

    def _ask_systemd(self) -> None:
        self._asked = [server for server in self._finder.servers.values() if server.unit is not None]
        units = [server.unit for server in self._asked if server.unit is not None]
        for server in self._asked:
            server.doubt = False
        self._systemd.ask(lambda: show(self._call, units, _SYSTEMD_TIMEOUT))

    def _hear_systemd(self, tick: int) -> None:
        waiting = any(server.pid is None and server.unit_state is None for server in self._asked)
        answer = self._systemd.take(_SYSTEMD_WAIT if waiting or tick > 0 else 0.0)
        if answer is None:
            return
        for server in self._asked:
            if isinstance(answer, Exception):
                server.unit_problem = f"systemd was asked: {answer}"
            elif server.unit in answer:
                server.unit_state, server.unit_problem = answer[server.unit], None
        self._asked = []
