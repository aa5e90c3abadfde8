"""Every Triton server on the droplet: its flags, its health and version, its repositories and their models."""

from __future__ import annotations

from time import monotonic
from typing import Any

from remote_scripts.facts_parts.facts_part import Part
from remote_scripts.facts_parts.facts_redact import redacted
from remote_scripts.facts_parts.facts_repository import (
    Budget,
    Repository,
    flag_values,
    open_repositories,
    read_models,
)
from remote_scripts.files import cut
from remote_scripts.triton.address import Endpoint
from remote_scripts.triton.find import Finder
from remote_scripts.triton.json import error_text, members, parse, text
from remote_scripts.triton.loopback import Answer, Chain, Request, drive
from remote_scripts.triton.processes import read_arguments
from remote_scripts.triton.server import Server
from remote_scripts.triton.stats import NO_VERSION, read_index

_PATIENCE = 3.0
_MAX_ARGUMENTS = 200
_FULL_LOOK = 2
"""A tick at which the finder looks for processes and for units wherever they may be."""


class Answers:
    """What one server said."""

    def __init__(self) -> None:
        self.live = Answer(0)
        self.ready = Answer(0)
        self.about = Answer(0)
        self.index = Answer(0)

    def ask(self, http: Endpoint) -> Chain:
        """Four questions over one connection that ends with the last."""
        self.live = yield _get(http, "/v2/health/live")
        if self.live.failure:
            self.ready = self.about = self.index = self.live
            return
        self.ready = yield _get(http, "/v2/health/ready")
        self.about = yield _get(http, "/v2")
        self.index = yield Request(
            http.address, "/v2/repository/index", method="POST", body=b"{}", connect=http.connect
        )


def read(part: Part) -> list[dict[str, Any]]:
    """One entry a server, running or not; see docs/wire.md 2."""
    listed = part.call.request.get("servers")
    finder = Finder(part.call, listed if isinstance(listed, list) else [])
    finder.look(tick=_FULL_LOOK, slow=True, now=monotonic())
    servers = list(finder.servers.values())
    answers = {server.name: Answers() for server in servers}
    chains = [
        answers[server.name].ask(server.endpoints.http)
        for server in servers
        if server.endpoints is not None and server.endpoints.http is not None
    ]
    drive(chains, monotonic() + _PATIENCE)
    budget = Budget()
    return [_server(part, place, server, answers[server.name], budget) for place, server in enumerate(servers)]


def _server(part: Part, place: int, server: Server, answers: Answers, budget: Budget) -> dict[str, Any]:
    here = f"/{place}"
    owner = {"unit": server.unit, "container": server.container, "pid": server.pid}
    found: dict[str, Any] = {"name": server.name, "how": server.how}
    found.update({key: value for key, value in owner.items() if value is not None})
    if server.endpoints is not None:
        ends = (
            ("http", server.endpoints.http),
            ("grpc", server.endpoints.grpc),
            ("metrics", server.endpoints.metrics),
        )
        found.update({key: end.shown for key, end in ends if end is not None})
    _health(part, here, answers, found)
    index = _index(part, here, answers)
    if server.pid is None:
        part.miss(f"{here}/command", "it does not run, so its command line is not known")
        found["models"] = [_listed(name, versions) for name, versions in sorted(index.items())]
        return found
    arguments = read_arguments(str(part.call.resolve("/proc")), server.pid)
    found["command"] = [cut(word) for word in redacted(arguments[:_MAX_ARGUMENTS])]
    repositories = open_repositories(part.call, server.pid, server.container_id, arguments)
    found["repositories"] = [repository.about() for repository in repositories]
    found["models"] = _models(part, here, repositories, arguments, index, budget)
    return found


def _health(part: Part, here: str, answers: Answers, found: dict[str, Any]) -> None:
    """``live`` and ``ready``, ``version`` and ``extensions``; 403 is an answer too: the API is restricted."""
    for key, answer in (("live", answers.live), ("ready", answers.ready)):
        if answer.status in (200, 400, 503):
            found[key] = answer.status == 200
        else:
            part.miss(f"{here}/{key}", _why(answer))
    try:
        about = members(parse(answers.about.body)) if answers.about.status == 200 else {}
    except ValueError:
        about = {}
    version = text(about.get("version"))
    if version is None:
        part.miss(f"{here}/version", _why(answers.about))
        return
    found["version"] = version
    extensions = about.get("extensions")
    found["extensions"] = [cut(str(name)) for name in extensions[:64]] if isinstance(extensions, list) else []


def _index(part: Part, here: str, answers: Answers) -> dict[str, list[dict[str, Any]]]:
    """Versions by model, as the repository index has them; a model that failed to parse has none there."""
    try:
        if answers.index.status != 200:
            raise ValueError(_why(answers.index))
        entries = read_index(answers.index.body)
    except ValueError as error:
        part.miss(f"{here}/states", str(error))
        return {}
    models: dict[str, list[dict[str, Any]]] = {}
    for (name, version), entry in entries.items():
        versions = models.setdefault(name, [])
        if version != NO_VERSION:
            state: dict[str, Any] = {"version": version, "state": entry.state}
            if entry.reason:
                state["reason"] = entry.reason
            versions.append(state)
    return models


def _models(
    part: Part,
    here: str,
    repositories: list[Repository],
    arguments: list[str],
    index: dict[str, list[dict[str, Any]]],
    budget: Budget,
) -> list[dict[str, Any]]:
    """Models on disk and in the index, by name; one that only the index knows has no config here."""
    config_name = (flag_values(arguments, "model-config-name") or [""])[-1]
    models: dict[str, dict[str, Any]] = {}
    for number, repository in enumerate(repositories):
        for name, model in read_models(repository, number, config_name, budget).items():
            if name in models:
                models[name].setdefault("also_in", []).append(number)
            else:
                models[name] = model
        if repository.problem:
            part.miss(f"{here}/repositories/{number}/models", repository.problem)
    for name, versions in index.items():
        models.setdefault(name, {"name": name})["states"] = versions
    if budget.left_out:
        part.miss(f"{here}/models", f"{budget.left_out} configs or models are left out: the answer is long enough")
    return [models[name] for name in sorted(models)]


def _listed(name: str, versions: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "states": versions}


def _get(http: Endpoint, path: str) -> Request:
    return Request(http.address, path, keep=True, connect=http.connect)


def _why(answer: Answer) -> str:
    if answer.failure:
        return answer.reason
    if answer.status == 0:
        return "it does not run, or has no HTTP port"
    if answer.status == 403:
        return f"Triton restricts this (403): {error_text(answer.body) or 'a header is wanted'}"
    return f"Triton answered {answer.status}: {error_text(answer.body) or 'no reason'}"
