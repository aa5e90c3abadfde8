"""The server itself: tritonserver 2.51.0 (24.10) from the nvidia-pytriton wheel, laid out once in the cache.

The wheel (55 MB, x86-64, glibc 2.35+) carries the binary, its libraries, the Python backend with stubs for
Python 3.8 to 3.13, and the local response cache; no other backend.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.lab.cache import cache_folder, locked
from tests.lab.cc import compiled

WHEEL = "nvidia-pytriton==0.7.0"
SERVER_VERSION = "2.51.0"
PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
BACKENDS = Path(__file__).parent / "backends"


class LabTritonError(RuntimeError):
    """The lab's Triton cannot be had here; the message says why and what to do."""


def layout() -> Path:
    """The laid-out server, fetched on first use: ``bin/ lib/ caches/ backends/ stubs/3.X/``.

    ``backends/python`` has no stub yet: that depends on the Python it will run under (``add_stub``).

    Raises:
        LabTritonError: pip could not fetch the wheel, with pip's own words.
    """
    home = cache_folder() / f"tritonserver-{SERVER_VERSION}"
    with locked(cache_folder() / "locks" / "tritonserver"):
        if not home.is_dir():
            with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
                _lay_out(_fetch(Path(scratch)), Path(scratch) / "home")
                (Path(scratch) / "home").rename(home)
    return home


def add_stub(home: Path, python: str) -> None:
    """Give the Python backend in ``home`` the stub for Python ``python`` ("3.11").

    Raises:
        LabTritonError: the wheel has no stub for this Python.
    """
    stub = home / "stubs" / python / "triton_python_backend_stub"
    if not stub.is_file():
        raise LabTritonError(f"{WHEEL} has no Python backend for Python {python}; it has {', '.join(PYTHONS)}")
    target = home / "backends/python/triton_python_backend_stub"
    target.unlink(missing_ok=True)
    shutil.copy2(stub, target)


def use_system_python(home: Path, python: str) -> None:
    """Let the stub for Python 3.13 run on Debian's libpython, as the others do, and see Debian's packages.

    The wheel brings a libpython of its own for that one, whose frozen ``site`` does not know dist-packages.
    """
    for bundled in (home / "lib").glob(f"libpython3-*.{python.removeprefix('3.')}.so.1.0"):
        bundled.unlink()
        bundled.symlink_to(f"/usr/lib/x86_64-linux-gnu/libpython{python}.so.1.0")


def add_backends(home: Path) -> None:
    """Put the lab's own backends (``backends/``) and what its models share beside the Python backend.

    Raises:
        tests.lab.cc.NoCompilerError: the native one has to be compiled, and there is no cc.
    """
    shutil.copyfile(BACKENDS / "lab_tensors.py", home / "backends/python/lab_tensors.py")
    for name in ("tensorrtllm", "vllm"):
        target = home / "backends" / name
        target.mkdir(exist_ok=True)
        shutil.copyfile(BACKENDS / name / "model.py", target / "model.py")
        for shared in ("inflight.py", "lab_tensors.py"):
            shutil.copyfile(BACKENDS / shared, target / shared)
    source = BACKENDS / "responses.c"
    library = "libtriton_lab_responses.so"
    made = compiled("responses", [source], {library: ("-shared", "-fPIC", str(source))})
    (home / "backends/lab_responses").mkdir(exist_ok=True)
    shutil.copyfile(made / library, home / "backends/lab_responses" / library)


def _fetch(folder: Path) -> Path:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--quiet",
        "-d",
        str(folder),
    ]
    done = subprocess.run([*pip, WHEEL], capture_output=True, text=True, timeout=600, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        raise LabTritonError(f"pip could not fetch {WHEEL}: {done.stderr.strip()[-500:]}")
    return wheels[0]


def _lay_out(wheel: Path, home: Path) -> None:
    unpacked = home.with_name("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    server = unpacked / "pytriton/tritonserver"
    home.mkdir()
    for source, target in (
        (server / "bin", "bin"),
        (server / "backends", "backends"),
        (server / "caches", "caches"),
        (server / "python_backend_stubs", "stubs"),
        (unpacked / "nvidia_pytriton.libs", "lib"),
    ):
        source.rename(home / target)
    for program in (home / "bin/tritonserver", *home.glob("stubs/*/triton_python_backend_stub")):
        program.chmod(0o755)
