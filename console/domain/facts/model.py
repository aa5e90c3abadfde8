"""The facts of a droplet at one moment.

Where something is None or a part is missing, ``Facts.why`` has the reason. Every ``str`` is printable, ``RawText``
is not: it is kept to the byte, for diffs and checks, and goes through
``console.domain.telemetry.text.printable`` line by line before it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from console.domain.facts.ufw import UfwRule

RawText = NewType("RawText", str)


@dataclass(frozen=True, slots=True)
class OperatingSystem:
    """From os-release(5)."""

    id: str | None = None
    id_like: str | None = None
    version_id: str | None = None
    version_codename: str | None = None
    pretty_name: str | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """The running kernel, and whether an update waits for a reboot."""

    release: str | None = None
    machine: str | None = None
    reboot_required: bool | None = None
    reboot_packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the firmware says; on DigitalOcean ``serial`` is the droplet's id."""

    vendor: str | None = None
    product: str | None = None
    serial: str | None = None


@dataclass(frozen=True, slots=True)
class CloudInit:
    """How far cloud-init is.

    Attributes:
        status: "not installed", "disabled", "not started", "running", "done", "error".
        stage: The one that runs.
        errors: Those that ended it; ``recoverable`` those it went on after.
    """

    status: str | None = None
    stage: str | None = None
    datasource: str | None = None
    errors: tuple[str, ...] = ()
    recoverable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A GPU by the kernel module's account."""

    bus: str | None = None
    model: str | None = None
    uuid: str | None = None
    firmware: str | None = None


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """GPUs and their driver, without NVML.

    Attributes:
        bus: PCI addresses of NVIDIA's display controllers, driven or not.
        modules: Which of nvidia, nvidia_uvm and nouveau are loaded.
        module_version: Of the loaded kernel module; ``library_version`` of libnvidia-ml on disk. Different ones
            do not work together until a reboot.
        profiling_admin_only: The module's word on performance counters.
        smi_status: nvidia-smi's exit status; ``smi_text`` what it said.
    """

    bus: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    devices: tuple[GpuDevice, ...] = ()
    module_version: str | None = None
    library_version: str | None = None
    profiling_admin_only: bool | None = None
    smi_status: int | None = None
    smi_text: RawText | None = None


@dataclass(frozen=True, slots=True)
class DockerContainer:
    """As ``docker ps --all`` has it."""

    name: str | None = None
    image: str | None = None
    state: str | None = None
    status: str | None = None
    ports: str | None = None


@dataclass(frozen=True, slots=True)
class Docker:
    """Docker and what gives its containers GPUs.

    Attributes:
        gpu_runtime: NVIDIA's container runtime is installed.
        gpu_toolkit: Version line of nvidia-ctk.
        cdi: CDI specification files.
        daemon_json: The text of /etc/docker/daemon.json.
    """

    installed: bool | None = None
    running: bool | None = None
    version: str | None = None
    runtimes: tuple[str, ...] = ()
    default_runtime: str | None = None
    live_restore: bool | None = None
    cgroup_driver: str | None = None
    root: str | None = None
    gpu_runtime: bool | None = None
    gpu_toolkit: str | None = None
    cdi: tuple[str, ...] = ()
    daemon_json: RawText | None = None
    containers: tuple[DockerContainer, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """A systemd unit, in systemctl's words."""

    name: str
    load: str | None = None
    active: str | None = None
    sub: str | None = None
    result: str | None = None
    enabled: str | None = None
    file: str | None = None
    restarts: int | None = None
    pid: int | None = None
    reload_needed: bool | None = None


@dataclass(frozen=True, slots=True)
class Units:
    """systemd: its own state, what failed, and the units of interest by name."""

    state: str | None = None
    failed: tuple[str, ...] = ()
    units: Mapping[str, Unit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket and who owns it.

    Attributes:
        protocol: "tcp" or "udp".
        address: Numeric; "0.0.0.0" and "::" are every interface.
        container: The 64-digit id.
    """

    protocol: str
    address: str
    port: int
    pid: int | None = None
    process: str | None = None
    unit: str | None = None
    container: str | None = None


@dataclass(frozen=True, slots=True)
class Ufw:
    """UFW as its files have it; ``systemctl`` knows nothing of this (facts/host.md 1)."""

    enabled: bool | None = None
    ipv6: bool | None = None
    incoming: str | None = None
    outgoing: str | None = None
    routed: str | None = None
    logging: str | None = None
    rules: tuple[UfwRule, ...] = ()
    rules6: tuple[UfwRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Firewall:
    """What is meant and what is: UFW's files (None where it is not installed) and the kernel's rules."""

    ufw: Ufw | None = None
    nft: RawText | None = None
    iptables: RawText | None = None
    ip6tables: RawText | None = None
    iptables_legacy: RawText | None = None
    ip6tables_legacy: RawText | None = None


@dataclass(frozen=True, slots=True)
class Resolver:
    """How names are resolved.

    Attributes:
        mode: resolved's word for /etc/resolv.conf: "stub", "uplink", "static", "foreign", "missing".
        link: Where /etc/resolv.conf points, if it is a link.
        resolved: The text of ``resolvectl status``.
        hosts_order: nsswitch's for ``hosts``.
        prefers_ipv4: gai.conf puts IPv4 first.
    """

    mode: str | None = None
    link: str | None = None
    text: RawText | None = None
    nameservers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    resolved: RawText | None = None
    hosts_order: tuple[str, ...] = ()
    prefers_ipv4: bool | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """A mounted file system; sizes in bytes, None where asking could hang."""

    mount: str
    device: str | None = None
    type: str | None = None
    read_only: bool | None = None
    total: int | None = None
    free: int | None = None
    inodes_free: int | None = None


@dataclass(frozen=True, slots=True)
class Repository:
    """A model repository.

    Attributes:
        path: As the server was told.
        kind: "local", "s3", "gs", "as".
        host_path: Where it lies on the droplet.
        writable: A change made on the droplet reaches it; where not, ``reason``.
    """

    path: str
    kind: str | None = None
    host_path: str | None = None
    writable: bool | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class VersionState:
    """A version in Triton's repository index."""

    version: str
    state: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """A model on disk, in the index, or both.

    Attributes:
        repository: Its place in ``TritonServer.repositories``; None where only the index knows it.
        also_in: Further repositories that hold one of that name: Triton then serves none of them.
        versions: Version folders on disk.
        states: Versions in the index.
        config: The text of the config file in force; where None, ``config_reason``.
        config_file: Its path within the model's folder.
        config_sha256: Of its bytes: what a change expects to find.
        misplaced: config.pbtxt files within version folders, which Triton ignores.
    """

    name: str
    repository: int | None = None
    also_in: tuple[int, ...] = ()
    versions: tuple[str, ...] = ()
    states: tuple[VersionState, ...] = ()
    config: RawText | None = None
    config_file: str | None = None
    config_sha256: str | None = None
    config_reason: str | None = None
    misplaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TritonServer:
    """A Triton server, running or not; ``command`` has its secrets replaced by "***"."""

    name: str
    how: str | None = None
    unit: str | None = None
    container: str | None = None
    pid: int | None = None
    http: str | None = None
    grpc: str | None = None
    metrics: str | None = None
    live: bool | None = None
    ready: bool | None = None
    version: str | None = None
    extensions: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    repositories: tuple[Repository, ...] = ()
    models: tuple[Model, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything; a part is None where it could not be read.

    Attributes:
        time: Unix seconds by the droplet's clock.
        uid: Who read it: what only root may read is missing for others.
        python: The version of the Python that read it.
        unavailable: JSON Pointer into the document to reason.
    """

    time: float | None = None
    uid: int | None = None
    python: str | None = None
    os: OperatingSystem | None = None
    kernel: Kernel | None = None
    hardware: Hardware | None = None
    cloud_init: CloudInit | None = None
    gpu: GpuFacts | None = None
    docker: Docker | None = None
    units: Units | None = None
    listeners: tuple[Listener, ...] | None = None
    firewall: Firewall | None = None
    resolver: Resolver | None = None
    disks: tuple[Disk, ...] | None = None
    triton: tuple[TritonServer, ...] | None = None
    unavailable: Mapping[str, str] = field(default_factory=dict)

    def why(self, pointer: str) -> str | None:
        """Why nothing stands at a place of the document: its own reason, or the nearest above it."""
        while pointer:
            if pointer in self.unavailable:
                return self.unavailable[pointer]
            pointer = pointer.rpartition("/")[0]
        return None
