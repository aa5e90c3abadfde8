"""What only the local transport has to prove."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.contract.living import long_sleep, wait_for

PROGRAM = """
import sys, time
from console.remote.local import LocalTransport
script = f"trap '' TERM; sleep {sys.argv[1]} & sleep {sys.argv[1]}; :"
process = LocalTransport().open(["sh", "-c", script], timeout=20)
time.sleep(600)
"""


def test_what_runs_ends_with_this_program_even_if_it_is_killed() -> None:
    seconds = long_sleep()
    here = Path(__file__).parents[2]
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, seconds], cwd=here)
    wait_for(seconds, 2)
    program.send_signal(signal.SIGKILL)
    program.wait(10)
    wait_for(seconds, 0)


def test_it_needs_no_paramiko() -> None:
    code = "import sys; from console.remote.local import LocalTransport; sys.exit('paramiko' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0
