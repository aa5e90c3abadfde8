from __future__ import annotations

import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab.fixtures import MachineMaker, ProxyMaker
from tests.lab.machine import Machine
from tests.lab.users import NOT_READY, PASSWORDS

pytestmark = pytest.mark.lab


def ssh(
    machine: Machine, user: str, *command: str, config: Path | None = None, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    host = machine.name if user == "root" else f"{machine.name}-{user}"
    argv = ["ssh", "-F", str(config or machine.ssh_config), "-o", "BatchMode=yes", *options, host, *command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)


def ssh_typing(machine: Machine, user: str, typed: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Logs in with something typed at the prompt, and says what the prompt was on standard error."""
    helper = machine.folder / "askpass"
    helper.write_text(f'#!/bin/sh\necho "asked: $1" >&2\necho {shlex.quote(typed)}\n')
    helper.chmod(0o700)
    argv = ["ssh", "-F", str(machine.ssh_config), "-o", "NumberOfPasswordPrompts=1", *options]
    argv += ["-l", user, machine.name, "id -un"]
    environment = {**os.environ, "SSH_ASKPASS": str(helper), "SSH_ASKPASS_REQUIRE": "force"}
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, env=environment
    )


def test_root_logs_in_with_its_key_and_the_known_host_key(lab_machine: Machine) -> None:
    assert ssh(lab_machine, "root", "id -u; uname -n").stdout.split() == ["0", lab_machine.name]


def test_it_is_a_whole_debian_with_its_services(lab_machine: Machine) -> None:
    release = lab_machine.run(["sh", "-c", ". /etc/os-release; echo $ID $VERSION_CODENAME"]).stdout
    assert release.split() == [b"debian", b"bookworm"]
    assert lab_machine.run(["systemctl", "is-system-running"]).stdout == b"running\n"
    units = ["ssh", "systemd-journald", "systemd-networkd", "systemd-resolved", "dbus"]
    assert lab_machine.run(["systemctl", "is-active", *units]).stdout.split() == [b"active"] * len(units)
    assert lab_machine.run(["ufw", "status"]).stdout == b"Status: inactive\n"
    assert b"lab-" in lab_machine.run(["journalctl", "-b", "-n", "1", "-o", "json"]).stdout


def test_the_newer_release_has_an_sshd_that_punishes(lab_trixie: Machine) -> None:
    assert ssh(lab_trixie, "root", "id -u").stdout == "0\n"
    settings = lab_trixie.run(["sshd", "-T"]).stdout.decode()
    assert "persourcepenalties crash:90 authfail:5" in settings
    assert lab_trixie.run(["systemctl", "--version"]).stdout.startswith(b"systemd 257")


def test_two_machines_know_nothing_of_each_others_names_and_keys(lab_machine: Machine, lab_trixie: Machine) -> None:
    assert lab_machine.address != lab_trixie.address
    assert lab_machine.known_hosts.split()[2] != lab_trixie.known_hosts.split()[2]
    ids = {machine.run(["cat", "/etc/machine-id"]).stdout for machine in (lab_machine, lab_trixie)}
    assert len(ids) == 2


def test_a_service_of_one_machine_has_nothing_to_do_with_its_namesake_in_another(
    lab_machine: Machine, lab_trixie: Machine
) -> None:
    for machine in (lab_machine, lab_trixie):
        machine.run(["systemd-run", "--quiet", "--unit=namesake", "sleep", "600"])
    members = lab_machine.run(["cat", "/sys/fs/cgroup/system.slice/namesake.service/cgroup.procs"])
    pid = lab_machine.run(["systemctl", "show", "--property=MainPID", "--value", "namesake"])
    assert members.stdout == pid.stdout
    lab_machine.run(["systemctl", "stop", "namesake"])
    assert lab_trixie.run(["systemctl", "is-active", "namesake"]).stdout == b"active\n"
    lab_trixie.run(["systemctl", "stop", "namesake"])


def test_machines_of_a_run_reach_each_other_so_that_one_can_be_a_jump_host(
    lab_machine: Machine, lab_trixie: Machine
) -> None:
    config = lab_trixie.folder / "jump"
    config.write_text(lab_trixie.ssh_config.read_text() + lab_machine.ssh_config.read_text())
    answer = ssh(lab_trixie, "root", "uname -n", config=config, options=("-J", lab_machine.name))
    assert answer.stdout == f"{lab_trixie.name}\n"
    came_from = ssh(lab_trixie, "root", "echo $SSH_CLIENT", config=config, options=("-J", lab_machine.name))
    assert came_from.stdout.split()[0] == lab_machine.address


def test_it_is_reached_over_ipv6_as_well(lab_machine: Machine) -> None:
    config = lab_machine.ssh_config_at(lab_machine.address6, 22)
    assert ssh(lab_machine, "root", "id -u", config=config).stdout == "0\n"


def test_it_reaches_this_machine_and_no_other(lab_machine: Machine) -> None:
    with socket.create_server((lab_machine.gateway, 0)) as here:
        script = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1)"
        lab_machine.run(["python3", "-c", script, lab_machine.gateway, str(here.getsockname()[1])])
    number = lab_machine.gateway.split(".")[2]
    assert Path(f"/proc/sys/net/ipv4/conf/dclab{number}/forwarding").read_text() == "0\n"


def test_sudo_without_with_and_never(lab_machine: Machine) -> None:
    assert ssh(lab_machine, "op", "sudo -n id -u").stdout == "0\n"
    wanted = ssh(lab_machine, "opw", "sudo -n id -u")
    assert (wanted.returncode, "a password is required" in wanted.stderr) == (1, True)
    typed = ssh(lab_machine, "opw", f"echo {shlex.quote(PASSWORDS['opw'])} | sudo -S -p '' id -u")
    assert typed.stdout == "0\n"
    never = ssh(lab_machine, "plain", f"echo {shlex.quote(PASSWORDS['plain'])} | sudo -S -p '' id -u")
    assert "plain is not in the sudoers file" in never.stderr


def test_the_journal_is_there_for_those_who_may_read_it(lab_machine: Machine) -> None:
    read = "journalctl -q -u systemd-networkd -n 20"
    assert "systemd-networkd" in ssh(lab_machine, "logs", read).stdout
    assert ssh(lab_machine, "plain", read).stdout == ""


@pytest.mark.parametrize(
    ("user", "asks"), [("pw", "pw@{address}'s password:"), ("kbd", "(kbd@{address}) Password:")]
)
def test_logins_with_something_typed(lab_machine: Machine, user: str, asks: str) -> None:
    right = ssh_typing(lab_machine, user, PASSWORDS[user])
    assert right.stdout == f"{user}\n"
    assert "asked: " + asks.format(address=lab_machine.address) in right.stderr
    wrong = ssh_typing(lab_machine, user, "guess")
    assert wrong.returncode == 255
    assert "Permission denied" in wrong.stderr


def test_a_key_and_then_a_second_factor(lab_machine: Machine) -> None:
    key = ("-o", f"IdentityFile={lab_machine.key('factor')}")
    assert ssh_typing(lab_machine, "factor", PASSWORDS["factor"], *key).stdout == "factor\n"
    alone = ssh(lab_machine, "factor", "true")
    assert (alone.returncode, "keyboard-interactive" in alone.stderr) == (255, True)


def test_a_key_opens_only_its_own_account(lab_machine: Machine) -> None:
    argv = ["ssh", "-F", str(lab_machine.ssh_config), "-o", "BatchMode=yes", "-l", "plain", lab_machine.name]
    refused = subprocess.run(argv, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    assert "Permission denied (publickey)" in refused.stderr


def test_shells_that_refuse_talk_or_are_not_posix(lab_machine: Machine) -> None:
    refused = ssh(lab_machine, "nobodyhome", "true")
    assert (refused.returncode, refused.stdout) == (1, "This account is currently not available.\n")
    noisy = ssh(lab_machine, "noisy", "echo done")
    assert (noisy.stdout, noisy.stderr) == (f"Welcome to {lab_machine.name}!\ndone\n", "oops\n")
    assert ssh(lab_machine, "fish", "echo (id -un)").stdout == "fish\n"
    assert ssh(lab_machine, "tcsh", "set a=b; echo $a$shell").stdout == "b/bin/tcsh\n"
    booting = ssh(lab_machine, "booting", "id")
    assert (booting.returncode, booting.stdout) == (0, NOT_READY + "\n")


def test_run_gives_input_output_and_status_and_ends_what_takes_too_long(lab_machine: Machine) -> None:
    done = lab_machine.run(["sh", "-c", "cat; echo bad >&2; exit 3"], input=b"in", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"in", b"bad\n")
    with pytest.raises(RuntimeError, match="ended with 3"):
        lab_machine.run(["sh", "-c", "exit 3"])
    with pytest.raises(TimeoutError):
        lab_machine.run(["sh", "-c", "sleep 987 & sleep 988"], timeout=0.3)
    processes = lab_machine.run(["ps", "-eo", "args"]).stdout
    assert b"sleep 98" not in processes


def test_write_makes_folders_and_follows_links_as_they_are_inside(lab_machine: Machine) -> None:
    lab_machine.run(["mkdir", "/var/lib/lab-test"])
    lab_machine.run(["ln", "-s", "/var/lib/lab-test", "/var/lib/lab-link"])
    lab_machine.write("/var/lib/lab-link/deep/file", "text\n", 0o640, owner="op")
    assert lab_machine.run(["stat", "-c", "%a %U", "/var/lib/lab-test/deep/file"]).stdout == b"640 op\n"
    seen = lab_machine.root / "var/lib/lab-test/deep/file"
    assert (seen.read_text(), stat.S_IMODE(seen.stat().st_mode)) == ("text\n", 0o640)
    lab_machine.run(["rm", "-r", "/var/lib/lab-test", "/var/lib/lab-link"])


def test_a_machine_goes_down_and_comes_back_with_what_was_written(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm")
    machine.write("/root/kept", "yes")
    machine.shutdown()
    assert not machine.running
    assert ssh(machine, "root", "true", options=("-o", "ConnectTimeout=1")).returncode == 255
    machine.boot()
    assert machine.run(["cat", "/root/kept"]).stdout == b"yes"
    machine.kill()
    assert not machine.running
    machine.boot()
    kept = ssh(machine, "root", "cat /root/kept")
    assert (kept.stdout, kept.stderr) == ("yes", "")


def test_nothing_of_a_machine_outlives_its_systemd_nspawn(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm")
    machine.run(["systemd-run", "--quiet", "sleep", "4711"])
    (nspawn,) = processes_with(f"--machine={machine.name}")
    os.kill(nspawn, signal.SIGKILL)
    machine.close()
    assert not processes_with("sleep", "4711")


def processes_with(*arguments: str) -> list[int]:
    command = ["ps", "-ww", "-e", "-o", "pid=,args="]
    lines = [line.split() for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]
    return [int(line[0]) for line in lines if set(arguments) <= set(line[1:])]


def test_it_can_reboot_itself(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm")
    ssh(machine, "root", "touch /run/before; systemctl reboot")
    machine.wait_booted(boots=2)
    assert machine.run(["test", "-e", "/run/before"], check=False).returncode == 1
    assert ssh(machine, "root", "id -u").stdout == "0\n"


def test_rebuilt_host_keys_are_seen_as_changed(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm")
    before = machine.known_hosts
    machine.rebuild_host_keys()
    assert machine.known_hosts != before
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in ssh(machine, "root", "true").stderr
    machine.rebuild_host_keys(trust=True)
    assert ssh(machine, "root", "id -u").stdout == "0\n"


def test_lines_for_sshd_win_over_the_labs_own(fresh_machine: MachineMaker) -> None:
    lines = ["MaxSessions 3", "MaxStartups 2", "PerSourcePenalties authfail:60 noauth:60 min:1"]
    settings = fresh_machine("trixie", sshd=lines).run(["sshd", "-T"]).stdout.decode()
    assert "maxsessions 3\n" in settings
    assert "maxstartups 2:30:2\n" in settings
    assert "authfail:60 noauth:60" in settings


def test_without_resolved_a_plain_file_names_the_resolver(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm", resolved=False)
    active = machine.run(["systemctl", "is-active", "systemd-resolved"], check=False)
    assert active.stdout == b"inactive\n"
    assert machine.run(["cat", "/etc/resolv.conf"]).stdout == f"nameserver {machine.gateway}\n".encode()


def test_folders_of_this_machine_are_shown_inside(fresh_machine: MachineMaker, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("seen")
    machine = fresh_machine("bookworm", binds={tmp_path: "/opt/shown"})
    assert machine.run(["cat", "/opt/shown/file"]).stdout == b"seen"
    assert machine.run(["touch", "/opt/shown/new"], check=False).returncode != 0


def test_ufw_really_closes_a_port(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm")
    machine.run(["ufw", "allow", "8000/tcp"])
    machine.run(["ufw", "--force", "enable"])
    assert ssh(machine, "root", "true", options=("-o", "ConnectTimeout=2")).returncode == 255
    machine.run(["ufw", "allow", "22/tcp"])
    assert ssh(machine, "root", "id -u").stdout == "0\n"


def test_it_is_reached_through_a_slow_line(lab_machine: Machine, proxy: ProxyMaker) -> None:
    line = proxy(lab_machine, delay=0.05)
    config = lab_machine.ssh_config_at(line.address, line.port)
    start = time.monotonic()
    assert ssh(lab_machine, "root", "id -u", config=config).stdout == "0\n"
    assert time.monotonic() - start > 0.5  # TCP, banner, key exchange, authentication, channel
    traffic = line.traffic()
    assert traffic.connections == 1
    assert min(traffic.up, traffic.down) > 1000


def test_real_docker_runs_a_container(fresh_machine: MachineMaker) -> None:
    machine = fresh_machine("bookworm", docker=True)
    script = (
        "tar -C / -c ./bin ./lib ./lib64 ./usr/bin ./usr/lib64 ./usr/lib/x86_64-linux-gnu | docker import - lab:1"
    )
    machine.run(["sh", "-c", script], timeout=60)
    said = machine.run(["docker", "run", "--rm", "lab:1", "/bin/echo", "from a container"], timeout=60)
    assert said.stdout == b"from a container\n"


LEAVE_BEHIND = """
import os, signal
from tests.lab.machine import Machine
machine = Machine("bookworm", disk=DISK)
machine.boot()
print(machine.folder, machine.run(["true"]).returncode, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

LEAVE = """
from tests.lab.machine import Machine
machine = Machine("bookworm")
machine.boot()
print(machine.folder, flush=True)
raise KeyboardInterrupt
"""


def python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)


def test_an_interrupted_run_leaves_nothing() -> None:
    folder = Path(python(LEAVE).stdout.split()[0])
    assert not folder.parent.exists()
    assert str(folder) not in Path("/proc/self/mounts").read_text()


@pytest.mark.parametrize("disk", [False, True])
def test_the_next_run_removes_what_a_killed_one_left(disk: bool) -> None:
    folder = Path(python(LEAVE_BEHIND.replace("DISK", str(disk))).stdout.split()[0])
    assert folder.exists()
    python("from tests.lab.run_folder import run_folder; run_folder()")
    assert not folder.parent.exists()
    assert str(folder) not in Path("/proc/self/mounts").read_text()
    assert not processes_with(f"--machine={folder.name}")
    loops = subprocess.run(["losetup", "--list", "--noheadings"], capture_output=True, text=True).stdout
    assert str(folder) not in loops
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{folder.name}"))
