"""Making this machine able to run the lab: Debian's packages, and the roots that droplets boot from."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.lab import host, root
from tests.lab.cache import cache_folder
from tests.lab.prune import KEPT_DAYS, prune
from tests.lab.triton import wheel


def main() -> int:
    """Set the lab up, and say what is done; quick where it was done before.

    Returns:
        0 when it is ready, and also where it cannot be built here, unless ``$DROPLET_CONSOLE_LAB`` is "required".
    """
    reason = host.why_impossible() or _prepare()
    if reason is None:
        return 0
    if host.is_required():
        say(f"${host.REQUIRED_VARIABLE} is required, and {reason}")
        return 1
    say(f"{reason}; its tests will be skipped")
    return 0


def _prepare() -> str | None:
    """Install and build what is missing; returns why that failed, or None."""
    try:
        missing = host.missing_packages()
        if missing:
            say(f"installing with apt: {' '.join(missing)}")
            host.install(missing)
        wheel.layout()
        unbuilt = [(release, extras) for release, extras in root.ROOTS if not root.is_built(release, extras)]
        if unbuilt:
            _build(unbuilt)
        for release, extras in root.ROOTS:
            root.build(release, extras)  # there: marked as used
        for path in prune():
            say(f"removed {path}, not used in {KEPT_DAYS} days")
    except (subprocess.CalledProcessError, OSError, RuntimeError) as error:
        return f"the lab could not be set up: {error}"
    return None


def _build(roots: Sequence[tuple[str, tuple[str, ...]]]) -> None:
    names = ", ".join("-".join((release, *extras)) for release, extras in roots)
    say(f"building in {cache_folder()}, from this machine's apt source: {names} (minutes)")
    started = time.monotonic()
    with ThreadPoolExecutor(len(roots)) as pool:
        list(pool.map(lambda wanted: root.build(*wanted), roots))
    say(f"built in {time.monotonic() - started:.0f} s")


def say(text: str) -> None:
    """Tell the person who waits."""
    print(f"lab: {text}", file=sys.stderr, flush=True)  # noqa: T201
