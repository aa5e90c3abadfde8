from __future__ import annotations

import pytest

from tests.lab.fixtures import MachineMaker

pytestmark = pytest.mark.lab

WRITE_BOTH = """
import os
for name, keep in (("kept", True), ("not-flushed", False)):
    with open("/var/lib/" + name, "w") as file:
        file.write(name)
        file.flush()
        if keep:
            os.fsync(file.fileno())
            folder = os.open("/var/lib", os.O_RDONLY)
            os.fsync(folder)
"""


def test_a_power_cut_keeps_what_was_flushed_and_nothing_else(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm", disk=True)
    machine.run(["python3", "-c", WRITE_BOTH])
    assert machine.run(["cat", "/var/lib/not-flushed"]).stdout == b"not-flushed"
    machine.power_cut()
    assert machine.run(["cat", "/var/lib/kept"]).stdout == b"kept"
    assert machine.run(["sh", "-c", "cat /var/lib/not-flushed || true"]).stdout == b""


def test_ending_the_processes_alone_proves_nothing_about_flushing(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm", disk=True)
    machine.run(["python3", "-c", WRITE_BOTH])
    machine.kill()
    machine.boot()
    assert machine.run(["cat", "/var/lib/not-flushed"]).stdout == b"not-flushed"


def test_the_power_can_be_cut_again_and_again_in_the_midst_of_writing(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm", disk=True)
    machine.write(
        "/root/count.py",
        "import os\n"
        "n = int(open('/root/n').read()) if os.path.exists('/root/n') else 0\n"
        "while True:\n"
        "    n += 1\n"
        "    with open('/root/n.new', 'w') as f:\n"
        "        print(n, file=f, flush=True)\n"
        "        os.fsync(f.fileno())\n"
        "    os.rename('/root/n.new', '/root/n')\n",
    )
    machine.run(["sync"])  # the script, that is
    seen = [0]
    for _ in range(3):
        machine.run(["systemd-run", "--quiet", "python3", "/root/count.py"])
        machine.run(["sh", "-c", "sleep 0.5; until test -s /root/n; do sleep 0.1; done; sync /root"])
        machine.power_cut()
        seen.append(int(machine.run(["cat", "/root/n"]).stdout))
    assert seen == sorted(set(seen))


def test_a_machine_without_a_disk_of_its_own_says_so(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm")
    with pytest.raises(RuntimeError, match="disk=True"):
        machine.power_cut()
    assert machine.running
