"""What travels to a droplet: the remote scripts and pynvml's one file in one archive, named by its content.

The name is the SHA-256 of the manifest, a line of JSON with each file's name, size and SHA-256; so it does not
depend on how the archive is compressed.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True)
class Bundle:
    """The scripts, ready to be sent.

    Attributes:
        contents: Files by their names in the archive.
    """

    contents: Mapping[str, bytes] = field(repr=False)

    @cached_property
    def manifest(self) -> bytes:
        """One line of JSON, without its newline: [name, size, SHA-256] for each file."""
        entries = [[name, len(data), sha256(data).hexdigest()] for name, data in sorted(self.contents.items())]
        return json.dumps(entries, separators=(",", ":")).encode("ascii")

    @cached_property
    def id(self) -> str:
        """The manifest's SHA-256, in hex."""
        return sha256(self.manifest).hexdigest()

    @cached_property
    def archive(self) -> bytes:
        """The manifest, a newline and the files' contents in the manifest's order, compressed by zlib.

        Only a droplet that has not seen this version needs it: about 60 ms, once.
        """
        parts = [self.manifest, b"\n", *(data for _, data in sorted(self.contents.items()))]
        return zlib.compress(b"".join(parts), 9)


@cache
def bundle() -> Bundle:
    """This program's own scripts; read once.

    Raises:
        FileNotFoundError: This installation lacks pynvml.
    """
    folder = Path(str(files("remote_scripts")))
    contents = {
        f"remote_scripts/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*.py")
        if path != folder / "boot.py"  # it travels by itself
    }
    pynvml = importlib.util.find_spec("pynvml")
    if pynvml is None or pynvml.origin is None:
        raise FileNotFoundError("pynvml is missing here: install droplet-console with its dependencies")
    contents["pynvml.py"] = Path(pynvml.origin).read_bytes()
    return Bundle(contents)


@cache
def boot_line() -> str:
    """The boot code as one line of Python."""
    packed = base64.b64encode(zlib.compress(files("remote_scripts").joinpath("boot.py").read_bytes(), 9))
    return f"import base64,zlib;exec(zlib.decompress(base64.b64decode('{packed.decode('ascii')}')))"


@cache
def fallback() -> str:
    """The POSIX sh script for a droplet without a usable Python."""
    return files("remote_scripts").joinpath("fallback.sh").read_text("utf-8")
