"""What can be set. Field names are the keys of config.yaml; config.example.yaml documents each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from console.domain.thresholds import Thresholds

COMMANDS = (
    "changes",
    "config",
    "demo",
    "doctor",
    "dns",
    "droplets",
    "firewall",
    "logs",
    "model",
    "provision",
    "service",
    "status",
    "watch",
)
"""First words of the command line. `droplet-console TARGET` opens that droplet, so none can be a droplet's name."""

COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan", "white")
"""The terminal's own colours, which every palette has."""


class Sudo(str, Enum):
    """How a login that is not root becomes root for reading what only root may read."""

    AUTO = "auto"
    """``sudo -n`` where it asks nothing; otherwise without root, and what is missing is said."""
    ASK = "ask"
    """Ask for sudo's password where it wants one."""
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Server:
    """A Triton server that discovery needs help with.

    Attributes:
        name: As it is to be shown, and as ``--server`` takes it.
        http: Port on the droplet's loopback; likewise grpc and metrics. None: found by discovery.
    """

    name: str
    http: int | None = None
    grpc: int | None = None
    metrics: int | None = None


@dataclass(frozen=True, slots=True)
class Practice:
    """What makes a droplet a practice droplet: a folder of this machine, over loopback. Not in config.yaml.

    Attributes:
        ssh_config: The ssh_config file to reach it by, alone.
        root: The folder that its remote scripts take for ``/``.
        path: Where they look for tools.
    """

    ssh_config: str
    root: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Droplet:
    """A droplet, as the settings or the command line name it.

    Attributes:
        name: As it is shown and called.
        host: Name, address, a Host of ssh_config, or "local". None: the droplet's own name is that Host.
        user: Login name; None leaves it to ssh_config.
        port: SSH port; None leaves it to ssh_config.
        identity: Private key files, ``~`` allowed; empty leaves them to ssh_config.
        jump: As ssh's ProxyJump has it ("user@bastion:2222,inner"), "none" for none; None leaves it to ssh_config.
        sudo: How to become root.
        group: The droplet's group.
        tags: Further words to select by.
        colour: The terminal colour of its name; None for the default.
        production: Marked wherever its name stands.
        price_per_hour: In the currency you think in.
        interval: Seconds between samples; None for ``Settings.interval``.
        servers: Triton servers that discovery needs help with.
        practice: Set for the demo's droplet alone: whatever shows it says DEMO.
    """

    name: str
    host: str | None = None
    user: str | None = None
    port: int | None = None
    identity: tuple[str, ...] = ()
    jump: str | None = None
    sudo: Sudo = Sudo.AUTO
    group: str | None = None
    tags: tuple[str, ...] = ()
    colour: str | None = None
    production: bool = False
    price_per_hour: float | None = None
    interval: float | None = None
    servers: tuple[Server, ...] = ()
    practice: Practice | None = None

    @property
    def target(self) -> str:
        """What ``console.remote.address.resolve`` takes: ``host``, ``user@host``, ``user@host:port`` or "local"."""
        host = self.host or self.name
        if self.port is not None:
            host = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        return f"{self.user}@{host}" if self.user else host


@dataclass(frozen=True, slots=True)
class Settings:
    """All of config.yaml.

    Attributes:
        file: Where it was read from; None where there is no file.
        droplets: In the order of the file.
        thresholds: Where advice begins.
        interval: Seconds between samples, for droplets that set none.
    """

    file: str | None = None
    droplets: tuple[Droplet, ...] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)
    interval: float = 1.0

    def droplet(self, name: str) -> Droplet | None:
        """The droplet of that name."""
        return next((droplet for droplet in self.droplets if droplet.name == name), None)
