"""The Triton servers in the facts, with their repositories and models."""

from __future__ import annotations

from console.domain.facts import model
from console.domain.facts.reader import Place


def read_servers(root: Place) -> tuple[model.TritonServer, ...]:
    """Servers that have a name; the others cannot be spoken of."""
    servers = (_server(here) for here in root.children("triton", 64))
    return tuple(server for server in servers if server is not None)


def _server(here: Place) -> model.TritonServer | None:
    name = here.text("name")
    if name is None:
        return None
    return model.TritonServer(
        name=name,
        how=here.text("how"),
        unit=here.text("unit"),
        container=here.text("container"),
        pid=here.whole("pid"),
        http=here.text("http"),
        grpc=here.text("grpc"),
        metrics=here.text("metrics"),
        live=here.flag("live"),
        ready=here.flag("ready"),
        version=here.text("version"),
        extensions=here.texts("extensions"),
        command=here.texts("command"),
        repositories=tuple(_repository(entry) for entry in here.children("repositories", 64)),
        models=tuple(found for entry in here.children("models", 2000) if (found := _model(entry)) is not None),
    )


def _repository(here: Place) -> model.Repository:
    return model.Repository(
        path=here.text("path") or "",
        kind=here.text("kind"),
        host_path=here.text("host_path"),
        writable=here.flag("writable"),
        reason=here.text("reason"),
    )


def _model(here: Place) -> model.Model | None:
    name = here.text("name")
    if name is None:
        return None
    states = ((entry.text("version"), entry) for entry in here.children("states", 64))
    return model.Model(
        name=name,
        repository=here.whole("repository"),
        also_in=here.wholes("also_in"),
        versions=here.texts("versions", 1000),
        states=tuple(
            model.VersionState(version, entry.text("state"), entry.text("reason"))
            for version, entry in states
            if version
        ),
        config=here.raw("config"),
        config_file=here.text("config_file"),
        config_sha256=here.text("config_sha256"),
        config_reason=here.text("config_reason"),
        misplaced=here.texts("misplaced"),
    )
