"""The real Triton for the practice droplet: tritonserver 2.51.0 (24.10) out of the nvidia-pytriton wheel.

``python -m console.demo.wheel`` (``make demo`` runs it) has pip fetch it from the package registry, once: 55 MB,
for x86-64 with glibc 2.35 or newer, and a Python that has its shared library. Nothing is fetched while the demo
runs.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

WHEEL = "nvidia-pytriton==0.7.0"
VERSION = "2.51.0"
VARIABLE = "DROPLET_CONSOLE_DEMO_TRITON"
"""Environment: the folder that it is laid out in; "none" for the stand-in."""
_NUMPY = "numpy>=1.26,<3"
_GLIBC = (2, 35)
_STUBS = ("3.10", "3.11", "3.12", "3.13")
_PATIENCE = 600.0
_READY_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that the Python backend can embed.

    Attributes:
        program: Its executable.
        version: "3.11".
        libraries: The folder of its shared library.
    """

    program: str
    version: str
    libraries: str


class NotHere(Exception):  # noqa: N818 - it is what it says
    """The real Triton cannot run on this machine; the text says why."""


def home() -> Path:
    """Where it is laid out, or would be: in the environment that this program is installed in."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path(sys.prefix) / f"share/droplet-console/tritonserver-{VERSION}"


def installed() -> Path | None:
    """The laid-out server where it is there and can run here."""
    folder = home()
    return folder if (folder / "ready").is_file() and unable() is None else None


def unable() -> str | None:
    """Why it cannot run on this machine; None where it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"the wheel is for Linux on x86-64, and this is {platform.system()} on {platform.machine()}"
    name, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if name != "glibc" or numbers < _GLIBC:
        return f"glibc 2.35 is needed, and this is {name or 'another libc'} {version}".rstrip()
    return None


def interpreter() -> Interpreter:
    """A Python for the Python backend: this one, or the system's.

    Raises:
        NotHere: Neither has a shared library, or the wheel has no stub for it.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = str(sysconfig.get_config_var("LIBDIR") or "")
    own: str = getattr(sys, "_base_executable", sys.executable)
    found = [Interpreter(own, version, folder), *_of_the_system()]
    for one in found:
        if one.version in _STUBS and Path(one.libraries, f"libpython{one.version}.so.1.0").is_file():
            return one
    raise NotHere(f"no Python here has its shared library: `apt-get install libpython{version}`, for example")


def _of_the_system() -> list[Interpreter]:
    program = "/usr/bin/python3"
    code = "import sys, sysconfig; print('%d.%d' % sys.version_info[:2], sysconfig.get_config_var('LIBDIR'))"
    try:
        done = subprocess.run([program, "-c", code], capture_output=True, text=True, timeout=10, check=True)
        version, _, folder = done.stdout.strip().partition(" ")
    except (OSError, subprocess.SubprocessError):
        return []
    folders = (folder, "/usr/lib/x86_64-linux-gnu", "/usr/lib64")
    return [Interpreter(program, version, one) for one in folders]


def install() -> Path:
    """Fetch and lay it out, where that was not done.

    Raises:
        NotHere: It cannot be had here.
    """
    reason = unable()
    if reason is not None:
        raise NotHere(reason)
    target = home()
    if (target / "ready").is_file():
        return target
    python = interpreter()
    sys.stderr.write(f"demo: pip fetches {WHEEL} (55 MB) and numpy from the package registry into {target}\n")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        fresh = Path(scratch, "home")
        _lay_out(_fetch(Path(scratch)), Path(scratch), fresh, python)
        _give_numpy(fresh / "python", python)
        (fresh / "ready").write_text(f"{python.version}\n{python.libraries}\n", encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    return target


def _fetch(folder: Path) -> Path:
    _pip("download", "--no-deps", "--only-binary=:all:", "-d", str(folder), WHEEL)
    return next(folder.glob("*.whl"))


def _lay_out(wheel: Path, scratch: Path, fresh: Path, python: Interpreter) -> None:
    unpacked = scratch / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    server = unpacked / "pytriton/tritonserver"
    fresh.mkdir()
    for source, name in ((server / "bin", "bin"), (server / "backends", "backends")):
        source.rename(fresh / name)
    (unpacked / "nvidia_pytriton.libs").rename(fresh / "lib")
    stub = fresh / "backends/python/triton_python_backend_stub"
    shutil.copyfile(server / f"python_backend_stubs/{python.version}/triton_python_backend_stub", stub)
    for program in (fresh / "bin/tritonserver", stub):
        program.chmod(0o755)
    # For 3.13 the wheel brings a libpython of its own, which does not find that Python's modules.
    for bundled in (fresh / "lib").glob(f"libpython3-*.{python.version.removeprefix('3.')}.so.1.0"):
        bundled.unlink()
        bundled.symlink_to(Path(python.libraries, f"libpython{python.version}.so.1.0"))


def _give_numpy(folder: Path, python: Interpreter) -> None:
    """The stub takes its modules from the Python that PATH finds first: one of its own, with numpy."""
    subprocess.run([python.program, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    target = folder / f"lib/python{python.version}/site-packages"
    where = ("--target", str(target), "--python-version", python.version)
    _pip("install", "--no-deps", "--only-binary=:all:", *where, _NUMPY)


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", words[0], "--quiet", "--disable-pip-version-check", *words[1:]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise NotHere(f"pip {words[0]} took more than {_PATIENCE:g} s") from None
    if done.returncode != 0:
        raise NotHere(f"pip {words[0]} failed: {done.stderr.strip()[-300:]}")


def check(server: Path) -> None:
    """Start it once with its models, so that the demo may count on it.

    Raises:
        NotHere: It does not get ready; its last words are in the text.
    """
    # Not at the top: the demo's process imports this module for far less.
    from console.demo import timeline
    from console.demo.ports import reserve
    from console.demo.real_triton import RealTriton

    with tempfile.TemporaryDirectory(prefix="droplet-console-check-") as scratch:
        ports, held = reserve()
        for one in held:
            one.close()
        folder = Path(scratch, "triton")
        real = RealTriton(server, folder, ports, lambda: timeline.at(0), lambda: 1.0)
        try:
            real.start()
            deadline = time.monotonic() + _READY_WITHIN
            while not real.ready():
                if real.pid is None or time.monotonic() > deadline:
                    words = (folder / "triton.log").read_text("utf-8", "replace").strip()[-300:]
                    raise NotHere(f"the server does not get ready: {words}")
                time.sleep(0.2)
        finally:
            real.kill()


def main() -> int:
    """Install it, or say why not: the demo runs without, on a stand-in."""
    try:
        fresh = not (home() / "ready").is_file()
        server = install()
        if fresh:
            check(server)
    except (NotHere, OSError, subprocess.SubprocessError) as error:
        (home() / "ready").unlink(missing_ok=True)
        sys.stderr.write(f"demo: without a real Triton, on a stand-in: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
