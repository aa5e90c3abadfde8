"""A server on this machine, for captures of what runs beside it without a droplet."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.lab.cache import cache_folder, locked
from tests.lab.triton import wheel
from tests.lab.triton.api import Api
from tests.lab.triton.options import Options

SYSTEM_PYTHON = Path("/usr/bin/python3")


@dataclass(frozen=True, slots=True)
class HostServer:
    """A running server and how to ask it."""

    process: subprocess.Popen[bytes]
    api: Api
    log: Path
    options: Options


def home() -> Path:
    """The server laid out with the stub for the system's own Python.

    Raises:
        wheel.LabTritonError: this machine lacks what the Python backend needs, and what to install.
    """
    version = _system_python()
    library = f"libpython{version}.so.1.0"
    if not any(Path("/usr/lib").rglob(library)):
        raise wheel.LabTritonError(f"{library} is missing: apt-get install libpython{version}")
    source = wheel.layout()
    target = cache_folder() / f"host-python{version}"
    with locked(cache_folder() / "locks" / target.name):
        if not target.is_dir():
            scratch = Path(f"{target}.new")
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.copytree(source, scratch, copy_function=_link)
            wheel.add_stub(scratch, version)
            wheel.use_system_python(scratch, version)
            _give_numpy(scratch / "python", version)
            scratch.rename(target)
        wheel.add_backends(target)
    return target


def environment(server: Path) -> dict[str, str]:
    """What the server and its stubs need: their libraries, and the Python that has numpy first on PATH.

    The stub embeds an isolated interpreter: it takes its prefix from the ``python3`` that PATH finds, and no
    notice of PYTHONPATH.
    """
    return {"PATH": f"{server}/python/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LD_LIBRARY_PATH": f"{server}/lib"}


@contextmanager
def running(options: Options, log: Path, wait: bool = True) -> Iterator[HostServer]:
    """Start a server on loopback, on free ports where the options name the usual ones, and end it afterwards."""
    server = home()
    http, grpc, metrics = free_ports(3)
    options = replace(
        options,
        address="127.0.0.1",
        http=http,
        grpc=grpc,
        metrics=None if options.metrics is None else metrics,
    )
    with log.open("wb") as file:
        process = subprocess.Popen(
            options.argv(str(server)), env=environment(server), stdout=file, stderr=subprocess.STDOUT
        )
    host = HostServer(process, Api("127.0.0.1", options.http, options.metrics), log, options)
    try:
        if wait:
            host.api.wait_ready()
        yield host
    finally:
        stop(host)


def stop(server: HostServer, timeout_s: float = 40.0) -> int:
    """End a server as systemd would; returns its exit status."""
    if server.process.poll() is None:
        server.process.send_signal(signal.SIGTERM)
    try:
        return server.process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        server.process.kill()
        return server.process.wait(5)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _system_python() -> str:
    if not SYSTEM_PYTHON.exists():
        raise wheel.LabTritonError(f"{SYSTEM_PYTHON} is missing: apt-get install python3")
    print_version = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run(
        [SYSTEM_PYTHON, "-c", print_version], capture_output=True, text=True, check=True
    ).stdout.strip()


def _give_numpy(folder: Path, version: str) -> None:
    """A virtual environment of the system's Python with a numpy that the stub understands.

    The stub is built for numpy 1: under numpy 2 numbers still travel by DLPack, but strings end the model's
    process. There is no numpy 1 for Python 3.13.
    """
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    numpy = "numpy==1.26.4" if version in ("3.9", "3.10", "3.11", "3.12") else "numpy>=2.1,<2.3"
    target = ["--target", str(folder / f"lib/python{version}/site-packages"), "--python-version", version]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", *target, numpy]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise wheel.LabTritonError(f"pip could not install {numpy}: {done.stderr.strip()[-500:]}")


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)
