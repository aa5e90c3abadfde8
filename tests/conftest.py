"""What holds for every test: those on the lab run where it can be built, and say why where it cannot."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.lab import host

# How fast an example runs says more about what else this machine does than about the code.
settings.register_profile("droplet-console", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("droplet-console")

pytest_plugins = ["tests.lab.fixtures"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test on the lab with the reason, or fail it where the lab is required."""
    if item.get_closest_marker("lab") is None:
        return
    reason = host.why_not_ready()
    if reason is None:
        return
    if host.is_required():
        pytest.fail(f"${host.REQUIRED_VARIABLE} is required, and {reason}", pytrace=False)
    pytest.skip(reason)
