from __future__ import annotations

import pytest

from remote_scripts.system.unit_files import UnitFiles, container_name, exec_start
from remote_scripts.system.units import parse_show, show, unit_of
from tests.remote_scripts.fake_droplet import FakeDroplet


@pytest.mark.parametrize(
    ("cgroup", "expected"),
    [
        ("0::/system.slice/triton.service\n", "triton.service"),
        ("0::/system.slice/system-triton.slice/triton@a.service\n", "triton@a.service"),
        ("0::/system.slice/triton.service/sub\n", "triton.service"),
        ("12:cpu:/x\n1:name=systemd:/system.slice/triton.service\n0::/\n", "triton.service"),
        ("0::/user.slice/user-0.slice/session-1.scope\n", None),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service\n", None),
        ("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", None),
        ("0::/system.slice/ssh.service\n", None),
        ("0::/system.slice/docker.service\n", None),
        ("0::/\n", None),
        ("", None),
        ("rubbish", None),
    ],
)
def test_the_unit_of_a_process(cgroup: str, expected: str | None) -> None:
    assert unit_of(cgroup) == expected


def test_the_answer_about_several_units() -> None:
    text = (
        "Id=a.service\nLoadState=loaded\nActiveState=active\nSubState=running\nNRestarts=2\nMainPID=17\n"
        "\nId=b.service\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nNRestarts=[not set]\n"
    )
    states = parse_show(text)
    assert (states["a.service"].restarts, states["a.service"].pid) == (2, 17)
    assert (states["b.service"].load, states["b.service"].restarts) == ("not-found", 0)


def test_systemctl_that_fails_says_so(droplet: FakeDroplet) -> None:
    droplet.tool("systemctl", "echo 'Failed to connect to bus: Host is down' >&2; exit 1")
    with pytest.raises(OSError, match="Failed to connect to bus"):
        show(droplet.call(), ["a.service"], 5)


def test_systemctl_that_hangs_is_given_up(droplet: FakeDroplet) -> None:
    droplet.tool("systemctl", "sleep 60")
    with pytest.raises(OSError, match="did not answer"):
        show(droplet.call(), ["a.service"], 0.2)


def test_a_name_that_is_none_is_not_asked_about(droplet: FakeDroplet) -> None:
    droplet.tool("systemctl", 'echo "$@" >&2; exit 1')
    assert show(droplet.call(), ["--version", "a b.service", "../x.service"], 5) == {}


def test_continued_lines_are_one_command() -> None:
    text = "[Service]\nExecStart=/usr/bin/docker run \\\n  --name=x \\\n  IMAGE\n ExecStart = b\nExecStartPre=c\n"
    assert exec_start(text) == ["/usr/bin/docker run    --name=x    IMAGE", "b"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/usr/bin/docker run --rm --name triton IMAGE tritonserver", "triton"),
        ("-/usr/bin/docker run --name=triton IMAGE", "triton"),
        ("docker run IMAGE --name", ""),
        ("podman run --name t IMAGE", "t"),
        ("/usr/bin/docker rm -f --name x", ""),
        ("tritonserver --name x run", ""),
        ("docker run 'unclosed --name x", "x"),
    ],
)
def test_the_container_that_a_command_starts(command: str, expected: str) -> None:
    assert container_name([command]) == expected


def test_units_are_looked_at_again_when_they_change(droplet: FakeDroplet) -> None:
    files = UnitFiles(droplet.call())
    droplet.unit("a.service", "ExecStart=tritonserver")
    droplet.write("/usr/lib/systemd/system/b.service", "[Service]\nExecStart=tritonserver\n")
    assert files.look(everywhere=False) == {"a.service": ""}
    assert files.look(everywhere=True) == {"a.service": "", "b.service": ""}
    droplet.unit("c.service", "ExecStart=docker run --name c IMAGE tritonserver")
    assert files.look(everywhere=False) == {"a.service": "", "b.service": "", "c.service": "c"}
    (droplet.root / "etc/systemd/system/a.service").unlink()
    assert set(files.look(everywhere=False)) == {"b.service", "c.service"}


def test_a_unit_is_known_by_its_command_or_its_name(droplet: FakeDroplet) -> None:
    droplet.unit("triton-inference-server.service", "ExecStart=/opt/start.sh")
    droplet.unit("triton-exporter.service", "ExecStart=/opt/exporter")
    droplet.unit("watch.service", "ExecStart=/opt/watch", "# After=tritonserver.service")
    droplet.unit("ssh.service", "ExecStart=/usr/sbin/sshd tritonserver")
    droplet.write("/etc/systemd/system/bad.service", b"\xff\xfe\0ExecStart=tritonserver")
    (droplet.root / "etc/systemd/system/masked.service").symlink_to("/dev/null")
    assert set(UnitFiles(droplet.call()).look(everywhere=True)) == {"triton-inference-server.service"}
