"""As root: whatever the demo and its scripts write lies in its folder, and that folder goes.

The demo runs in a mount namespace whose whole file system is an overlay over this machine's: every change that
anything in there makes, wherever it makes it, is a file in the overlay's upper folder afterwards.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from console.demo import wheel

REPOSITORY = Path(__file__).parents[2]
SETUP = r"""
mount --make-rprivate /
mount -t tmpfs none "$SCRATCH"
mkdir "$SCRATCH/upper" "$SCRATCH/work" "$SCRATCH/all"
all=$SCRATCH/all
mount -t overlay overlay -o "lowerdir=/,upperdir=$SCRATCH/upper,workdir=$SCRATCH/work" "$all"
for folder in proc dev sys; do mount --rbind "/$folder" "$all/$folder"; done
mount -t tmpfs none "$all/dev/shm"
for folder in "$REPOSITORY" "$PREFIX"; do
 mkdir -p "$all$folder" && mount --rbind "$folder" "$all$folder" && mount -o remount,bind,ro "$all$folder"
done
mkdir "$all/tmp/own"
export TMPDIR=/tmp/own
chroot "$all" sh -c 'cd "$REPOSITORY" && "$PYTHON" -c "$PROGRAM" "$TRITON"'
cd "$SCRATCH/upper" && find . -mindepth 1 ! -type d | sed 's/^/CHANGED /'
cd "$all/dev/shm" && find . -mindepth 1 | sed 's/^/CHANGED dev shm /'
cd "$SCRATCH/upper" && find . -depth -name 'droplet-console-demo-*' | sed 's/^/LEFT /'
"""
PROGRAM = """
import sys
from console.demo.start import start_demo
from console.remote.connect import connect
from console.remote.login.login import LoginContext
from console.remote.prompts import NoPrompter
from console.remote.address.resolve import resolve
from console.remote.scripts.running import run_script
from console.services.watching import watch
left = 12
with start_demo(stand_in=sys.argv[1:] == ['stand-in']) as demo:
    with watch([demo.droplet], prompter=NoPrompter()) as watched:
        while left:
            event = watched.events(5)
            left -= event is not None and event.sample is not None
    practice = demo.droplet.practice
    target = resolve('demo', config=practice.ssh_config)
    context = LoginContext(demo.folder / 'known_hosts_of_the_test')
    transport = connect(target, prompter=NoPrompter(), context=context, timeout=15)
    facts = run_script(transport, 'facts', {}, timeout=30, root=practice.root, path=practice.path)
    inside = sum(1 for _ in demo.folder.rglob('*'))
    transport.close()
print('RAN', inside, facts['os']['id'])
"""


@pytest.mark.parametrize("triton", ["stand-in", "real"])
def test_nothing_outside_the_demos_folder_changes(tmp_path: Path, triton: str) -> None:
    if triton == "real" and wheel.installed() is None:
        pytest.skip("no real Triton is installed")
    if os.geteuid() != 0 or not Path("/proc/self/ns/mnt").exists():
        pytest.skip("a mount namespace of its own takes root on Linux")
    variables = {
        **{name: value for name, value in os.environ.items() if name not in ("TMPDIR", "PYTHONPATH")},
        "SCRATCH": str(tmp_path),
        "REPOSITORY": str(REPOSITORY),
        "PREFIX": sys.base_prefix,
        "PYTHON": sys.executable,
        "PROGRAM": PROGRAM,
        "TRITON": triton,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(REPOSITORY),
    }
    command = ["unshare", "--mount", "sh", "-ec", SETUP]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=100, check=False)
    if "RAN" not in done.stdout and "mount" in done.stderr and "Traceback" not in done.stderr:
        pytest.skip(f"no overlay can be mounted here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    ran, *changed = done.stdout.splitlines()
    assert int(ran.split()[1]) > 100, "it wrote its folder, scripts' cache included"
    assert ran.endswith("practice")
    assert changed == []
