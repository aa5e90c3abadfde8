"""What the lab compiles from its own C sources, once per source."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.cache import cache_folder, locked

FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2")


class NoCompilerError(RuntimeError):
    """There is no C compiler."""


def compiled(name: str, sources: Sequence[Path], targets: Mapping[str, Sequence[str]]) -> Path:
    """Compile into the lab's cache, or find it there.

    Args:
        name: What it is, for the folder's name.
        sources: All files that the result depends on.
        targets: cc's arguments by the name of the file that they make.

    Returns:
        The folder with the targets.

    Raises:
        NoCompilerError: cc is missing and the cache does not have it.
        RuntimeError: cc failed, with what it said.
    """
    digest = hashlib.sha256(repr(targets).encode() + b"".join(path.read_bytes() for path in sources)).hexdigest()
    store = _store()
    folder = store / f"{name}-{digest[:12]}"
    with locked(store / f"{name}.lock"):
        if not folder.is_dir():
            cc = shutil.which("cc")
            if cc is None:
                raise NoCompilerError(
                    f"{name} is compiled on first use and there is no cc: apt-get install gcc libc6-dev"
                )
            with tempfile.TemporaryDirectory(dir=store) as scratch:
                made = Path(scratch) / "made"
                made.mkdir()
                for target, arguments in targets.items():
                    _run([cc, *FLAGS, "-o", str(made / target), *arguments])
                made.rename(folder)
    return folder


def _store() -> Path:
    """A folder of the lab's cache; for those who may not write there, one of their own."""
    shared = cache_folder() / "compiled"
    with contextlib.suppress(PermissionError):  # answered below, like a folder that is somebody else's
        shared.mkdir(parents=True, exist_ok=True)
    if os.access(shared, os.W_OK):
        return shared
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "droplet-console-lab/compiled"


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
