"""The first code of ours that runs on a droplet: it finds or fetches the scripts and hands over to ``launch``.

This file is not in the bundle. It travels by itself, packed into one line (``scripts.bundle.boot_line``),
and may import nothing but the standard library. What it prints and reads is in docs/wire.md 1.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

try:
    # Without OpenSSL, which hashlib loads: 4 MB less for as long as the script runs.
    from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]  # Python 3.12 and newer
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from hashlib import sha256

MARK = "\x01droplet-console/1 "
KEPT_VERSIONS = 2
LEFT_BEHIND = 3600.0
ROOT_BASE = "/var/lib/droplet-console"
USER_BASE = "~/.cache/droplet-console"


def say(answer: Mapping[str, object]) -> None:
    """Print one marked line."""
    os.write(1, (MARK + json.dumps(answer) + "\n").encode("ascii"))


def own(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether ``path`` is a folder or file of ours that nobody else may enter."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def intact(version: Path, bundle: str) -> bool:
    """Whether an unpacked version is ours alone and has every file as its manifest says."""
    try:
        manifest = (version / "manifest").read_bytes()
        return (
            own(version, stat.S_ISDIR)
            and own(version / "manifest", stat.S_ISREG)
            and sha256(manifest).hexdigest() == bundle
            and all(
                own(version / name, stat.S_ISREG) and sha256((version / name).read_bytes()).hexdigest() == digest
                for name, _, digest in json.loads(manifest)
            )
        )
    except (OSError, ValueError):
        return False


def open_archive(packed: bytes, bundle: str) -> dict[str, bytes]:
    """The files of an archive by their names, the manifest among them, all of them checked."""
    import zlib

    manifest, _, rest = zlib.decompress(packed).partition(b"\n")
    if sha256(manifest).hexdigest() != bundle:
        raise ValueError("the archive is not the one that was announced")
    files = {"manifest": manifest}
    for name, size, digest in json.loads(manifest):
        content, rest = rest[:size], rest[size:]
        if sha256(content).hexdigest() != digest:
            raise ValueError(f"{name} was damaged on its way")
        files[name] = content
    return files


def make_folders(base: Path) -> Path:
    """Make the folder for all versions, ours alone; replace what is not.

    Raises:
        OSError: The disk does not take it, or ``base`` is somebody else's.
    """
    base.mkdir(0o700, parents=True, exist_ok=True)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{base} belongs to somebody else")  # a rollback may need it: not ours to remove
    base.chmod(0o700)
    folder = base / "scripts"
    if not own(folder, stat.S_ISDIR):
        remove(folder)
        folder.mkdir(0o700)
    return folder


def remove(path: Path) -> None:
    """Remove whatever is there; of a link, the link."""
    if path.is_dir() and not path.is_symlink():
        import shutil

        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def unpack(files: Mapping[str, bytes], base: Path, bundle: str) -> Path:
    """Put a version into its place and remove old ones; its folder is returned.

    Raises:
        OSError: The disk does not take it.
    """
    os.umask(0o077)
    folder = make_folders(base)
    fresh = folder / f".new-{os.getpid()}"
    target = folder / bundle
    try:
        for name, content in files.items():
            (fresh / name).parent.mkdir(0o700, parents=True, exist_ok=True)
            (fresh / name).write_bytes(content)
        if not intact(target, bundle):
            remove(target)
        try:
            fresh.rename(target)
        except OSError:
            if not intact(target, bundle):  # otherwise another session was faster
                raise
    finally:
        remove(fresh)
    forget_old(folder, target)
    return target


def forget_old(folder: Path, target: Path) -> None:
    """Remove all but the last versions, and what an unpacking that was killed left behind."""
    entries = sorted(folder.iterdir(), key=lambda path: path.lstat().st_mtime, reverse=True)
    versions = [path for path in entries if not path.name.startswith(".new-")]
    left = [path for path in entries if path not in versions and path.lstat().st_mtime < time.time() - LEFT_BEHIND]
    for path in [*versions[KEPT_VERSIONS:], *left]:
        if path != target:
            remove(path)


class Memory:
    """Finds and loads modules in a mapping of file names to contents, where no disk takes them."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def _file(self, module: str) -> str | None:
        path = module.replace(".", "/")
        return next((name for name in (path + ".py", path + "/__init__.py") if name in self._files), None)

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """See importlib."""
        file = self._file(fullname)
        # A loader is whatever has these methods; importlib.abc would cost its memory.
        loader: Any = self
        return (file and spec_from_loader(fullname, loader, is_package=file.endswith("/__init__.py"))) or None

    def create_module(self, spec: ModuleSpec) -> None:
        """See importlib."""

    def exec_module(self, module: ModuleType) -> None:
        """See importlib; the code knows which file it is from."""
        file = str(self._file(module.__name__))
        exec(compile(self._files[file], f"<memory>/{file}", "exec", dont_inherit=True), module.__dict__)  # noqa: S102


def boot(line: str | bytes) -> None:
    """Make the scripts importable and launch the one that ``line`` calls for."""
    call = json.loads(line)
    bundle = call["bundle"]
    root = call.get("root", "/")
    # Under another root than / the cache lies there too: tests and the demo leave nothing behind elsewhere.
    base = Path(root + ROOT_BASE) if os.geteuid() == 0 or root != "/" else Path(USER_BASE).expanduser()
    folder = base / "scripts"
    version: Path | None = folder / bundle
    if not (own(base, stat.S_ISDIR) and own(folder, stat.S_ISDIR) and intact(folder / bundle, bundle)):
        say({"need": bundle})
        size = int.from_bytes(sys.stdin.buffer.read(8), "big")
        packed = sys.stdin.buffer.read(size)
        if not size or len(packed) < size:
            sys.exit(0)  # the other side went away
        files = open_archive(packed, bundle)
        try:
            version = unpack(files, base, bundle)
        except OSError as error:
            version = None
            call["uncached"] = str(error)
            sys.meta_path.insert(0, Memory(files))
    if version is not None:
        sys.path.insert(0, str(version))
    from remote_scripts import launch

    launch.main(call, cached=version is not None)


if __name__ == "__main__":
    boot(sys.argv[3] if len(sys.argv) > 3 else sys.stdin.buffer.readline())
