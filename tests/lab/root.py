"""The cached roots that lab droplets boot from, in layers.

A layer is a folder: the first holds a minimal Debian, each further one what its script changed on top (the upper
half of an overlay). A droplet mounts its layers read-only below a folder of its own. What a later test needs
(Docker, cloud-init) is one more layer, built when first asked for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab.apt_source import AptSource, apt_source
from tests.lab.cache import cache_folder, locked, recipe_key
from tests.lab.overlay import mounted_overlay
from tests.lab.prune import mark_used
from tests.lab.users import account_script, sshd_matches

PACKAGES = """
    systemd systemd-sysv dbus systemd-resolved openssh-server sudo ufw iptables iproute2 procps curl ca-certificates
    python3 python3-numpy fish tcsh
""".split()  # noqa: SIM905
RELEASES = {"bookworm": [*PACKAGES, "libpython3.11"], "trixie": [*PACKAGES, "libpython3.13"]}
"""What each release's root is made of. libpython is what the stub of Triton's Python backend is linked with."""

SETTLE = f"""
{account_script()}
rm -f /etc/ssh/ssh_host_*
cat >/etc/ssh/sshd_config.d/50-lab.conf <<'END'
AllowTcpForwarding yes
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
{sshd_matches()}END
systemctl enable systemd-networkd.service
systemctl disable systemd-networkd-wait-online.service
systemctl mask console-getty.service getty@.service apt-daily.timer apt-daily-upgrade.timer
"""
"""Accounts, sshd, and what no droplet in a lab needs at boot. Host keys are made for each droplet."""

DOCKER = "apt_install docker.io\n"


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer is made from.

    Attributes:
        name: For people; the folder's name begins with it.
        packages: For the first layer: the packages of the release named ``name``.
        script: For a further layer: a shell script, run as root inside; it may call ``apt_install PACKAGE...``.
    """

    name: str
    packages: tuple[str, ...] = ()
    script: str = ""


ROOTS: tuple[tuple[str, tuple[str, ...]], ...] = (("bookworm", ()), ("bookworm", ("docker",)), ("trixie", ()))
"""What the tests boot: release and extra layers. Built ahead, so that no test waits for packages."""

SETTLED = Layer("settled", script=SETTLE)
EXTRAS = {"docker": Layer("docker", script=DOCKER)}
"""Layers that a droplet may ask for by name."""


def layers_of(release: str, extras: Sequence[str] = ()) -> list[Layer]:
    """The layers of a droplet, lowest first.

    Raises:
        ValueError: No such release or extra layer.
    """
    if release not in RELEASES:
        raise ValueError(f"the lab has no release {release!r}; it has {', '.join(RELEASES)}")
    unknown = [name for name in extras if name not in EXTRAS]
    if unknown:
        raise ValueError(f"the lab has no layer {unknown[0]!r}; it has {', '.join(EXTRAS)}")
    base = Layer(release, packages=tuple(RELEASES[release]))
    return [base, *(EXTRAS[name] for name in extras), SETTLED]


def layer_folders(release: str, extras: Sequence[str] = ()) -> list[Path]:
    """Where the layers of a droplet lie in the cache, lowest first, built or not."""
    folders = []
    recipe: list[object] = []
    for layer in layers_of(release, extras):
        recipe.append([layer.name, layer.packages, layer.script])
        folders.append(cache_folder() / "roots" / f"{release}-{layer.name}-{recipe_key(recipe)}")
    return folders


def is_built(release: str, extras: Sequence[str] = ()) -> bool:
    """Whether a droplet could boot at once."""
    return all(folder.is_dir() for folder in layer_folders(release, extras))


def build(release: str, extras: Sequence[str] = ()) -> list[Path]:
    """Build what is missing; a second run waits for the first and then finds everything there.

    Returns:
        The layers' folders, lowest first.

    Raises:
        RuntimeError: A step failed; the message ends with what it said.
    """
    folders = layer_folders(release, extras)
    if not is_built(release, extras):
        _build_missing(release, extras, folders)
    for folder in folders:
        mark_used(folder)
    return folders


def _build_missing(release: str, extras: Sequence[str], folders: Sequence[Path]) -> None:
    with locked(cache_folder() / "locks" / f"root-{release}"):
        for index, layer in enumerate(layers_of(release, extras)):
            if not folders[index].is_dir():
                _build_layer(release, layer, folders[:index], folders[index])


def _build_layer(release: str, layer: Layer, below: Sequence[Path], target: Path) -> None:
    work = target.with_name(f".building-{target.name}")
    shutil.rmtree(work, ignore_errors=True)  # what an interrupted build left; the lock is ours
    made = work / "made"
    made.mkdir(parents=True)
    if layer.packages:
        _debootstrap(release, layer.packages, made)
    else:
        root = work / "root"
        with mounted_overlay(root, list(below), upper=made, work=work / "work"):
            _run_inside(root, layer.script)
    made.rename(target)
    shutil.rmtree(work)


def _debootstrap(release: str, packages: Sequence[str], root: Path) -> None:
    source = apt_source()
    packages_cache = cache_folder() / f"packages-{release}"
    packages_cache.mkdir(parents=True, exist_ok=True)
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}"]
    command += [f"--cache-dir={packages_cache}", *source.debootstrap_options, release, str(root), source.mirror]
    _checked(command, source)


def _run_inside(root: Path, script: str) -> None:
    source = apt_source()
    prelude = (
        "set -eu\n"
        "apt_install() {\n"
        "    apt-get -q -q update\n"
        '    DEBIAN_FRONTEND=noninteractive apt-get -q -q -y --no-install-recommends install "$@" </dev/null\n'
        "    apt-get clean; rm -rf /var/lib/apt/lists/*\n"
        "}\n"
    )
    # The network is this machine's while packages are installed, and so is the way to resolve names.
    command = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", f"--directory={root}", "--as-pid2"]
    command += ["--resolv-conf=replace-host", "--timezone=off", "--pipe", "/bin/sh", "-c", prelude + script]
    Path("/run/systemd/nspawn").mkdir(parents=True, exist_ok=True)
    _checked(command, source)


def _checked(command: Sequence[str], source: AptSource) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **source.environment, "LC_ALL": "C.UTF-8"},
        check=False,
    )
    if done.returncode:
        said = done.stdout.decode(errors="replace")[-4000:]
        raise RuntimeError(f"building a lab root: {command[0]} ended with {done.returncode}:\n{said}")
