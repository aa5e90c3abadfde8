"""Model repositories, made from the models in ``models/``."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

MODELS = Path(__file__).parent / "models"
NAMES = tuple(sorted(path.name for path in MODELS.iterdir() if (path / "config.pbtxt").is_file()))


def add_model(
    repository: Path, model: str, name: str | None = None, edits: Mapping[str, str] | None = None
) -> Path:
    """Copy ``models/<model>`` into a repository.

    Args:
        repository: the folder that the server reads; made where it is missing.
        model: one of ``NAMES``.
        name: what it is called there; the config leaves the name out, so any will do.
        edits: pieces of its config.pbtxt and what takes their place, each of which must occur.

    Returns:
        The model's folder.

    Raises:
        ValueError: a piece to edit does not occur in the config.
    """
    folder = repository / (name or model)
    shutil.copytree(MODELS / model, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "1").mkdir(exist_ok=True)
    config = folder / "config.pbtxt"
    text = config.read_text()
    for old, new in (edits or {}).items():
        if old not in text:
            raise ValueError(f"{MODELS / model / 'config.pbtxt'} has no {old!r} to edit")
        text = text.replace(old, new)
    config.write_text(text)
    return folder


def add_models(repository: Path, models: Iterable[str] = NAMES) -> Path:
    """Copy several models under their own names; all of them unless told."""
    for model in models:
        add_model(repository, model)
    return repository


def add_copies(repository: Path, model: str, count: int, prefix: str | None = None) -> list[str]:
    """Copy one model ``count`` times, as ``<prefix>_00``, ``<prefix>_01``, ...; returns the names."""
    names = [f"{prefix or model}_{number:02}" for number in range(count)]
    for name in names:
        add_model(repository, model, name)
    return names
