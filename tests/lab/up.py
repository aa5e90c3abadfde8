"""``make lab``: one droplet that stays up until Ctrl-C, and how to reach it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tests.lab import host, nvml
from tests.lab.cache import cache_folder, take_lock
from tests.lab.machine import Machine
from tests.lab.nvml import machines as nvml_machines
from tests.lab.setup import say
from tests.lab.ssh_files import write_ssh_config
from tests.lab.triton.options import Options
from tests.lab.triton.unit import install as install_triton
from tests.lab.users import PASSWORDS

NAME = "lab"
"""What the droplet is called in the two files, whatever its host name is."""

MODELS = ("curve", "echo", "flaky", "stream")
LOADED = ("curve", "echo")
LOAD_SECONDS = 7 * 24 * 3600


def main() -> int:
    """Boot a droplet with a GPU and a Triton under a light load, say how to reach it, and wait for Ctrl-C.

    Returns:
        0 after Ctrl-C or SIGTERM, or where a droplet is up already; 1 where the lab cannot run here.
    """
    reason = host.why_not_ready()
    if reason is not None:
        say(reason)
        return 1
    folder = cache_folder() / "up"
    lock = take_lock(folder / "lock", wait=False)
    if lock is None:
        for line in said():
            say(line)
        return 0
    notes().unlink(missing_ok=True)  # of one that was killed
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        with Machine("bookworm") as machine, _served(machine), _described(machine):
            for line in (*how_to_reach(machine), "Ctrl-C ends it"):
                say(line)
            while machine.running:
                signal.sigtimedwait([], 1.0)
            say("the droplet has shut itself down")
    except KeyboardInterrupt:
        say("ended, and everything of it removed")
    finally:
        os.close(lock)
    return 0


def ssh_config() -> Path:
    """Where the OpenSSH configuration of the running droplet lies."""
    return cache_folder() / "up" / "ssh_config"


def settings() -> Path:
    """Where settings for droplet-console that name it lie."""
    return cache_folder() / "up" / "config.yaml"


def notes() -> Path:
    """Where the words on how to reach it lie, for whoever asks again."""
    return cache_folder() / "up" / "how_to_reach"


def said() -> list[str]:
    """What to say where one is up already."""
    try:
        return ["a droplet is up already", *notes().read_text().splitlines()]
    except FileNotFoundError:
        return ["a droplet is being started already: try again in a minute"]


@contextmanager
def _served(machine: Machine) -> Iterator[None]:
    """Give it a GPU and a Triton, and keep a light load on that."""
    nvml.install(machine, nvml_machines.ONE_H100)
    install_triton(machine, Options(load=MODELS, summaries=True)).start()
    command = [sys.executable, "-m", "tests.lab.triton.background", "--address", machine.address]
    command += ["--seconds", str(LOAD_SECONDS), "--until-input-ends", *LOADED]
    load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        load.terminate()
        load.wait(10)


@contextmanager
def _described(machine: Machine) -> Iterator[None]:
    """Keep the files that say how to reach it, for as long as it is up."""
    config = ssh_config()
    write_ssh_config(config, NAME, machine.address, machine.ssh_port, machine.known_hosts, machine.keys)
    settings().write_text(
        f"droplets:\n  {NAME}:\n    host: {machine.address}\n    user: root\n    identity: {machine.key()}\n"
    )
    ends = f"Ctrl-C where it was started ends it, or: kill -INT {os.getpid()}"
    notes().write_text("\n".join([*how_to_reach(machine), ends]) + "\n")
    try:
        yield
    finally:
        for path in (config, config.with_name(config.name + ".known_hosts"), settings(), notes()):
            path.unlink(missing_ok=True)


def how_to_reach(machine: Machine) -> list[str]:
    """What a person needs to know, line by line."""
    program = Path(sys.executable).with_name("droplet-console")
    console = f"{shlex.quote(str(program))} --config {shlex.quote(str(settings()))}"
    users = " ".join(f"{NAME}-{user}" for user in machine.keys if user != "root")
    passwords = ", ".join(f"{user} {password!r}" for user, password in PASSWORDS.items())
    return [
        f"up: {machine.name} at {machine.address}",
        f"  ssh -F {ssh_config()} {NAME}",
        f"  {console} status {NAME}",
        f"  {console} watch {NAME}",
        f"its host key: {machine.fingerprints['ssh-ed25519']}",
        f"other logins: {users}; tests/lab/users.py says what each is for",
        f"passwords: {passwords}",
    ]


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
