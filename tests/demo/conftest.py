from __future__ import annotations

from collections.abc import Iterator

import pytest

from console.demo.start import DemoDroplet, start_demo


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoDroplet]:
    with start_demo(stand_in=True) as running:
        yield running
