from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SLOW = """
import sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "paramiko":
            time.sleep(0.5)
            print("loaded", flush=True)

sys.meta_path.insert(0, Slow())
from console.remote.ssh.paramiko_api import warm_up
warm_up()
"""


def test_a_process_that_ends_early_waits_for_what_is_being_loaded() -> None:
    """An interpreter that ended beside the import of compiled code was aborted, about one time in ten."""
    done = subprocess.run([sys.executable, "-c", SLOW], cwd=ROOT, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"loaded\n", b"")
