from __future__ import annotations

from pathlib import Path

import pytest

from tests.remote_scripts.fake_droplet import FakeDroplet


@pytest.fixture
def droplet(tmp_path: Path) -> FakeDroplet:
    return FakeDroplet(tmp_path)
