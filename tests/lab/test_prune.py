from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.lab.cache import CACHE_VARIABLE
from tests.lab.prune import mark_used, prune


def test_only_what_was_not_used_in_a_while_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    root, image, other = tmp_path / "roots/old", tmp_path / "images/old.ext4", tmp_path / "tritonserver/old"
    for folder in (root, other):
        folder.mkdir(parents=True)
    image.parent.mkdir()
    image.touch()
    later = time.time() + 13 * 24 * 3600
    assert prune(later) == []
    assert sorted(prune(later + 2 * 24 * 3600)) == [image, root]
    assert not root.exists()
    assert other.exists()
    root.mkdir()
    mark_used(root)
    assert prune(time.time()) == []
