"""From the document that `facts` sends to typed facts. Pure; nothing in the document can make it fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from console.domain.facts import model
from console.domain.facts.reader import Place
from console.domain.facts.triton import read_servers
from console.domain.facts.ufw import UfwRule, read_rule
from console.domain.telemetry.text import printable

SCHEMA = "facts/1"
_MAX_REASONS = 2000
_Part = TypeVar("_Part")


class NotFactsError(ValueError):
    """The document is none of ours: not an object, or of a schema that this version does not know."""


def read_facts(document: object) -> model.Facts:
    """Typed facts from the document, as ``json.loads`` gives it.

    Raises:
        NotFactsError: It is no document of schema facts/1.
    """
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        what = printable(found, 64) if isinstance(found, str) else "no schema"
        raise NotFactsError(f"the droplet sent facts of another kind: {what} instead of {SCHEMA}")
    odd: dict[str, str] = {}
    root = Place(document, "", odd)

    def part(key: str, read: Callable[[Place], _Part]) -> _Part | None:
        return read(root.child(key)) if root.has(key) else None

    facts = model.Facts(
        time=root.number("time"),
        uid=root.whole("uid"),
        python=root.child("python").text("version"),
        os=part("os", _os),
        kernel=part("kernel", _kernel),
        hardware=part("machine", _hardware),
        cloud_init=part("cloud_init", _cloud_init),
        gpu=part("gpu", _gpu),
        docker=part("docker", _docker),
        units=part("units", _units),
        listeners=_listeners(root) if root.has("listeners") else None,
        firewall=part("firewall", _firewall),
        resolver=part("resolver", _resolver),
        disks=_disks(root) if root.has("disks") else None,
        triton=read_servers(root) if root.has("triton") else None,
    )
    reasons = root.child("unavailable")
    for pointer in reasons.keys(_MAX_REASONS):
        reason = reasons.text(pointer)
        if reason is not None:
            odd[printable(pointer)] = reason
    return replace(facts, unavailable=odd)


def _os(here: Place) -> model.OperatingSystem:
    return model.OperatingSystem(
        id=here.text("id"),
        id_like=here.text("id_like"),
        version_id=here.text("version_id"),
        version_codename=here.text("version_codename"),
        pretty_name=here.text("pretty_name"),
    )


def _kernel(here: Place) -> model.Kernel:
    return model.Kernel(
        release=here.text("release"),
        machine=here.text("machine"),
        reboot_required=here.flag("reboot_required"),
        reboot_packages=here.texts("reboot_packages"),
    )


def _hardware(here: Place) -> model.Hardware:
    return model.Hardware(vendor=here.text("vendor"), product=here.text("product"), serial=here.text("serial"))


def _cloud_init(here: Place) -> model.CloudInit:
    return model.CloudInit(
        status=here.text("status"),
        stage=here.text("stage"),
        datasource=here.text("datasource"),
        errors=here.texts("errors"),
        recoverable=here.texts("recoverable"),
    )


def _gpu(here: Place) -> model.GpuFacts:
    smi = here.child("nvidia_smi")
    addresses = (entry.text("address") for entry in here.children("bus", 64))
    return model.GpuFacts(
        bus=tuple(address for address in addresses if address),
        modules=here.texts("modules"),
        devices=tuple(
            model.GpuDevice(entry.text("bus"), entry.text("model"), entry.text("uuid"), entry.text("firmware"))
            for entry in here.children("devices", 64)
        ),
        module_version=here.text("module_version"),
        library_version=here.text("library_version"),
        profiling_admin_only=here.flag("profiling_admin_only"),
        smi_status=smi.status("status"),
        smi_text=smi.raw("text"),
    )


def _docker(here: Place) -> model.Docker:
    gpu = here.child("gpu")
    return model.Docker(
        installed=here.flag("installed"),
        running=here.flag("running"),
        version=here.text("version"),
        runtimes=here.texts("runtimes"),
        default_runtime=here.text("default_runtime"),
        live_restore=here.flag("live_restore"),
        cgroup_driver=here.text("cgroup_driver"),
        root=here.text("root"),
        gpu_runtime=gpu.flag("runtime_installed"),
        gpu_toolkit=gpu.text("toolkit"),
        cdi=gpu.texts("cdi"),
        daemon_json=here.raw("daemon_json"),
        containers=tuple(
            model.DockerContainer(
                entry.text("name"),
                entry.text("image"),
                entry.text("state"),
                entry.text("status"),
                entry.text("ports"),
            )
            for entry in here.children("containers", 200)
        ),
    )


def _units(here: Place) -> model.Units:
    units = here.child("units")
    found = {}
    for key in units.keys(256):
        entry, name = units.child(key), printable(key)
        found[name] = model.Unit(
            name=name,
            load=entry.text("load"),
            active=entry.text("active"),
            sub=entry.text("sub"),
            result=entry.text("result"),
            enabled=entry.text("enabled"),
            file=entry.text("file"),
            restarts=entry.whole("restarts"),
            pid=entry.whole("pid"),
            reload_needed=entry.flag("reload_needed"),
        )
    return model.Units(state=here.text("state"), failed=here.texts("failed"), units=found)


def _listeners(root: Place) -> tuple[model.Listener, ...]:
    found = []
    for entry in root.children("listeners", 1000):
        protocol, address, port = entry.text("protocol"), entry.text("address"), entry.whole("port")
        if protocol and address and port is not None and port < 65536:
            found.append(
                model.Listener(
                    protocol,
                    address,
                    port,
                    pid=entry.whole("pid"),
                    process=entry.text("process"),
                    unit=entry.text("unit"),
                    container=entry.text("container"),
                )
            )
    return tuple(found)


def _firewall(here: Place) -> model.Firewall:
    ufw = here.child("ufw")
    return model.Firewall(
        ufw=_ufw(ufw) if here.has("ufw") else None,
        nft=here.raw("nft"),
        iptables=here.raw("iptables"),
        ip6tables=here.raw("ip6tables"),
        iptables_legacy=here.raw("iptables_legacy"),
        ip6tables_legacy=here.raw("ip6tables_legacy"),
    )


def _ufw(here: Place) -> model.Ufw:
    return model.Ufw(
        enabled=here.flag("enabled"),
        ipv6=here.flag("ipv6"),
        incoming=here.text("incoming"),
        outgoing=here.text("outgoing"),
        routed=here.text("routed"),
        logging=here.text("logging"),
        rules=_rules(here, "rules"),
        rules6=_rules(here, "rules6"),
    )


def _rules(here: Place, key: str) -> tuple[UfwRule, ...]:
    rules = (read_rule(line) for line in here.texts(key, 2000))
    return tuple(rule for rule in rules if rule is not None)


def _resolver(here: Place) -> model.Resolver:
    return model.Resolver(
        mode=here.text("mode"),
        link=here.text("link"),
        text=here.raw("text"),
        nameservers=here.texts("nameservers"),
        search=here.texts("search"),
        options=here.texts("options"),
        resolved=here.raw("resolved"),
        hosts_order=here.texts("hosts_order"),
        prefers_ipv4=here.flag("prefers_ipv4"),
    )


def _disks(root: Place) -> tuple[model.Disk, ...]:
    found = []
    for entry in root.children("disks", 64):
        mount = entry.text("mount")
        if mount:
            found.append(
                model.Disk(
                    mount,
                    device=entry.text("device"),
                    type=entry.text("type"),
                    read_only=entry.flag("read_only"),
                    total=entry.whole("total"),
                    free=entry.whole("free"),
                    inodes_free=entry.whole("inodes_free"),
                )
            )
    return tuple(found)
