"""What the commands that reach droplets share: settings, droplets, a prompter, and one server out of several."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.exits import UsageError
from console.cli.options import Options
from console.cli.targets import choose
from console.settings import paths
from console.settings.load import load
from console.settings.schema import Droplet, Settings

if TYPE_CHECKING:  # the console starts through here, and must not load these before its first paint
    from console.domain.telemetry.sample import Sample
    from console.remote.errors import RemoteError


def read_settings(options: Options) -> Settings:
    """The settings that the flags and the environment name.

    Raises:
        SettingsError: They cannot be used.
    """
    return load(paths.find(options.config))


def choose_droplets(settings: Settings, words: Sequence[str], interval: float | None) -> tuple[Droplet, ...]:
    """The droplets that were named, each with the interval it is to be watched at.

    Raises:
        UsageError: A word means nothing, or the interval is too short.
    """
    if interval is not None and interval < 0.1:
        raise UsageError("--interval must be 0.1 seconds at least: the GPU's own counters are no faster")
    return tuple(
        dataclasses.replace(droplet, interval=interval or droplet.interval or settings.interval)
        for droplet in choose(settings, words)
    )


def one_server(sample: Sample, name: str | None) -> Sample | None:
    """The sample with that Triton server alone, its reasons moved along; as it is for no name.

    Returns:
        None where the droplet has no server of that name.
    """
    if name is None:
        return sample
    here = next((place for place, server in enumerate(sample.servers) if server.name == name), None)
    if here is None:
        return None
    mine = f"/servers/{here}"
    reasons: dict[str, str] = {}
    for pointer, reason in sample.unavailable.items():
        if pointer == mine or pointer.startswith(mine + "/"):
            reasons["/servers/0" + pointer[len(mine) :]] = reason
        elif not pointer.startswith("/servers/"):
            reasons[pointer] = reason
    return dataclasses.replace(sample, servers=(sample.servers[here],), unavailable=reasons)


def no_server(sample: Sample, name: str) -> UsageError:
    """What to say where ``one_server`` found none."""
    names = ", ".join(server.name for server in sample.servers)
    return UsageError(f"{sample.droplet} has no Triton server {name!a}; there is {names or 'none'}")


def explained(error: RemoteError, droplet: Droplet, settings: Settings) -> RemoteError:
    """The error; where a name was not found, with the nearest one of the settings or ssh_config."""
    from console.cli import ssh_names
    from console.remote.errors import FailureKind, RemoteError

    if error.kind is not FailureKind.NAME_NOT_RESOLVED or settings.droplet(droplet.name):
        return error
    host = droplet.host or droplet.name
    ours = [known.name for known in settings.droplets]
    close = difflib.get_close_matches(host, ours, n=1)
    if not close:
        close = difflib.get_close_matches(host, ssh_names.names(Path("~/.ssh/config").expanduser()), n=1)
    if not close:
        return error
    hint = f"Did you mean {close[0]}? {'The settings know' if close[0] in ours else '~/.ssh/config has'} that name."
    return RemoteError(error.kind, str(error), hint=f"{hint}\n{error.hint}" if error.hint else hint)
