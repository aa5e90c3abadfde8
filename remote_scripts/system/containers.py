"""Containers by id: name, and whether they live. From Docker's own store, or by asking Docker."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from remote_scripts.call import Call
from remote_scripts.files import cut
from remote_scripts.system.docker_store import DockerStore

SHORT = 12
"""Digits of an id that Docker shows."""
ASK_AGAIN = 60.0
"""Seconds until Docker is asked again for a container whose file is not to be read."""
OTHERS = frozenset({"libpod", "crio", "cri-containerd", "nerdctl"})
"""Runtimes by their control groups that Docker knows nothing of."""
NO_SUCH = (b"No such container", b"No such object")


class Container:
    """What is known of a container.

    Attributes:
        name: Docker's name for it, or the short id.
        gone: True where Docker no longer knows it or has it as ended; False where it lives or nobody can tell.
    """

    __slots__ = ("gone", "name")

    def __init__(self, name: str, *, gone: bool) -> None:
        self.name = name
        self.gone = gone


class Containers:
    """Looks containers up, each file read again only where it changed."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._store = DockerStore(call)
        self._asked: dict[str, tuple[float, Container]] = {}

    def look(self, ids: Mapping[str, str]) -> dict[str, Container]:
        """The containers of these ids (to the runtime). Docker is asked once for all, for 0.5 s at most."""
        found: dict[str, Container] = {}
        unknown = []
        for identity, runtime in ids.items():
            stored = self._store.get(identity)
            if stored is not None:
                found[identity] = Container(stored.name, gone=not stored.running)
            elif runtime in OTHERS:
                found[identity] = Container(identity[:SHORT], gone=False)
            else:
                unknown.append(identity)
        now = time.monotonic()
        ask = [one for one in unknown if one not in self._asked or now - self._asked[one][0] >= ASK_AGAIN]
        if ask:
            answers = self._ask(ask)
            for one in ask:
                self._asked[one] = (now, answers.get(one) or Container(one[:SHORT], gone=False))
        found.update({identity: self._asked[identity][1] for identity in unknown})
        for old in [one for one in self._asked if one not in found]:
            del self._asked[old]
        return found

    def _ask(self, ids: list[str]) -> dict[str, Container]:
        """Docker's own answer, where its files are elsewhere or not ours to read."""
        if self._call.tool("docker") is None:
            return {}
        form = '{"id":{{json .Id}},"name":{{json .Name}},"running":{{json .State.Running}}}'
        try:
            done = self._call.run(["docker", "inspect", "--type=container", f"--format={form}", *ids], 0.5)
        except OSError:
            return {}
        # One that Docker does not know is gone; of a Docker that does not answer, nothing follows.
        found = {
            one: Container(one[:SHORT], gone=True)
            for one in ids
            if any(b"%s: %s" % (text, one.encode()) in done.stderr for text in NO_SUCH)
        }
        for line in done.stdout.splitlines():
            try:
                answer = json.loads(line)
                identity, name, running = answer["id"], answer["name"], answer["running"]
            except (ValueError, KeyError, TypeError):
                continue
            if isinstance(identity, str) and isinstance(name, str):
                found[identity] = Container(_name(name, identity), gone=running is False)
        return found


def _name(name: str, identity: str) -> str:
    return cut(name.lstrip("/")) or identity[:SHORT]
