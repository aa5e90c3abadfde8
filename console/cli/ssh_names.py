"""The names that a person's ssh_config gives to hosts: what a misspelt name may have meant."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

MAX_BYTES = 1 << 20
_MAX_DEPTH = 3
"""ssh itself follows Include sixteen deep; for a suggestion this is enough."""


def names(file: Path) -> list[str]:
    """Every ``Host`` word without a pattern, that of included files too; none where it cannot be read.

    Args:
        file: An ssh_config file; relative includes are taken from its folder, as ssh does in ~/.ssh.
    """
    return list(dict.fromkeys(_names(file, file.parent, _MAX_DEPTH)))


def _names(file: Path, folder: Path, depth: int) -> Iterator[str]:
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return  # it only costs a suggestion: what is wrong with the file, ssh says when it is asked
    for line in text.splitlines():
        keyword, *words = line.replace("=", " ", 1).replace('"', " ").split() or ("",)
        if keyword.lower() == "host":
            yield from (word for word in words if not set(word) & set("*?!#") and word.isprintable())
        elif keyword.lower() == "include" and depth > 1:
            for word in words:
                for found in sorted(glob.glob(os.path.join(folder, os.path.expanduser(word)))):  # noqa: PTH111, PTH118, PTH207 - a pattern
                    yield from _names(Path(found), folder, depth - 1)
