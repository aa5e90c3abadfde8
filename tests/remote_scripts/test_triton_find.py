from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from remote_scripts.triton.find import REMEMBERED, SERVERS, Finder
from remote_scripts.triton.server import Server
from tests.remote_scripts.fake_droplet import UNIT_CGROUP, FakeDroplet

ID = "ab" * 32
OTHER_ID = "cd" * 32


class Looking:
    """A finder that looks once a second."""

    def __init__(self, droplet: FakeDroplet, *listed: Mapping[str, Any]) -> None:
        self.finder = Finder(droplet.call(), listed)
        self.tick = 0

    def look(self, ticks: int = 1) -> dict[str, Server]:
        for _ in range(ticks):
            self.finder.look(tick=self.tick, slow=self.tick % 10 == 0, now=float(self.tick))
            self.tick += 1
        return self.finder.servers


def test_a_server_started_by_hand(droplet: FakeDroplet) -> None:
    droplet.triton(10, "--http-port=8100", "--model-control-mode=explicit", start=4200)
    server = Looking(droplet).look()["triton-8100"]
    assert (server.how, server.pid, server.unit, server.container) == ("process", 10, None, None)
    assert server.started == 1700000042.0
    assert server.endpoints is not None
    assert server.endpoints.http is not None
    assert server.endpoints.http.address == ("127.0.0.1", 8100)
    assert server.flags is not None
    assert server.flags.control_mode == "explicit"


def test_a_server_in_a_unit_is_called_as_the_unit(droplet: FakeDroplet) -> None:
    droplet.triton(10, cgroup=UNIT_CGROUP.format("triton.service"))
    server = Looking(droplet).look()["triton"]
    assert (server.how, server.unit) == ("unit", "triton.service")


@pytest.mark.parametrize("service", ["ssh.service", "ssh@4-10.0.0.1:22-10.0.0.2:40.service", "cron.service"])
def test_a_server_started_over_ssh_is_none_of_sshds(droplet: FakeDroplet, service: str) -> None:
    droplet.triton(10, cgroup=UNIT_CGROUP.format(service))
    assert Looking(droplet).look()["triton-8000"].how == "process"


def test_a_server_in_a_container_is_called_as_the_container(droplet: FakeDroplet) -> None:
    droplet.container(ID, "my-triton", [(8000, "0.0.0.0:9000")], restarts=2)
    droplet.triton(10, cgroup=UNIT_CGROUP.format(f"docker-{ID}.scope"), net=2)
    server = Looking(droplet).look()["my-triton"]
    assert (server.how, server.container, server.container_id) == ("docker", "my-triton", ID)
    assert server.docker is not None
    assert server.docker.restarts == 2
    assert server.endpoints is not None
    assert server.endpoints.http is not None
    assert server.endpoints.http.shown == "0.0.0.0:9000"
    assert server.endpoints.http.connect is not None


def test_a_container_that_a_unit_runs_is_called_as_the_unit(droplet: FakeDroplet) -> None:
    run = "ExecStart=/usr/bin/docker run --rm --name my-triton --gpus all IMAGE tritonserver --model-repository=/m"
    droplet.unit("inference.service", run)
    droplet.container(ID, "my-triton")
    droplet.triton(10, cgroup=UNIT_CGROUP.format(f"docker-{ID}.scope"), net=2)
    servers = Looking(droplet).look()
    assert list(servers) == ["inference"]
    assert (servers["inference"].how, servers["inference"].container) == ("docker", "my-triton")


def test_several_servers_have_names_of_their_own(droplet: FakeDroplet) -> None:
    droplet.triton(10, "--http-port=8100", cgroup=UNIT_CGROUP.format("triton.service"))
    droplet.triton(11, "--http-port=8200", cgroup=UNIT_CGROUP.format("triton.service"))
    droplet.triton(12, "--http-port=8300")
    assert set(Looking(droplet).look()) == {"triton", "triton-8200", "triton-8300"}


def test_a_restarted_unit_is_the_same_server(droplet: FakeDroplet) -> None:
    cgroup = UNIT_CGROUP.format("triton.service")
    droplet.triton(10, cgroup=cgroup)
    looking = Looking(droplet)
    before = looking.look()["triton"]
    droplet.end(10)
    droplet.triton(20, cgroup=cgroup, start=9000)
    after = looking.look()
    assert list(after) == ["triton"]
    assert after["triton"] is before
    assert after["triton"].pid == 20


def test_a_process_id_that_was_given_again_is_another_process(droplet: FakeDroplet) -> None:
    droplet.triton(10, start=1000)
    looking = Looking(droplet)
    looking.look()
    droplet.process(10, "/bin/sleep", comm="sleep", start=5000)
    assert looking.look()["triton-8000"].pid is None


def test_a_zombie_is_no_server(droplet: FakeDroplet) -> None:
    droplet.triton(10)
    looking = Looking(droplet)
    looking.look()
    droplet.triton(10, state="Z")
    assert looking.look()["triton-8000"].pid is None


def test_a_new_server_is_seen_within_two_ticks(droplet: FakeDroplet) -> None:
    droplet.process(5, "sleep", comm="sleep")
    looking = Looking(droplet)
    assert looking.look() == {}
    droplet.triton(10)
    assert "triton-8000" in looking.look(2)


def test_a_shell_that_becomes_a_server_is_seen(droplet: FakeDroplet) -> None:
    droplet.process(10, "sh", comm="sh")
    looking = Looking(droplet)
    assert looking.look(9) == {}
    droplet.triton(10)
    assert "triton-8000" in looking.look(20)


def test_a_fork_of_the_server_is_none(droplet: FakeDroplet) -> None:
    droplet.triton(10)
    droplet.triton(11, parent=10)
    assert list(Looking(droplet).look()) == ["triton-8000"]


def test_the_ranks_of_an_mpi_start_are_one_server(droplet: FakeDroplet) -> None:
    droplet.process(9, "mpirun", comm="mpirun")
    for pid in (10, 11, 12):
        droplet.triton(pid, "--http-port=8000", parent=9)
    looking = Looking(droplet)
    assert list(looking.look()) == ["triton-8000"]
    assert looking.finder.pids() == dict.fromkeys((10, 11, 12), "triton-8000")


def test_a_server_that_was_started_by_hand_and_ended_is_forgotten_after_a_while(droplet: FakeDroplet) -> None:
    droplet.triton(10)
    looking = Looking(droplet)
    looking.look()
    droplet.end(10)
    assert looking.look()["triton-8000"].pid is None
    assert "triton-8000" in looking.look(int(REMEMBERED) - 10)
    assert looking.look(20) == {}


def test_a_successor_started_before_the_end_takes_over_the_name(droplet: FakeDroplet) -> None:
    droplet.triton(10)
    looking = Looking(droplet)
    looking.look()
    droplet.triton(11, start=2000)
    assert len(looking.look(2)) == 2
    droplet.end(10)
    servers = looking.look()
    assert list(servers) == ["triton-8000"]
    assert servers["triton-8000"].pid == 11


def test_a_unit_that_does_not_run_is_there(droplet: FakeDroplet) -> None:
    droplet.unit("triton.service", "ExecStart=/opt/tritonserver/bin/tritonserver \\", "  --model-repository=/m")
    droplet.unit("other.service", "ExecStart=/bin/true", "# not tritonserver")
    droplet.unit("late.service", "ExecStart=/bin/true")
    droplet.write("/etc/systemd/system/late.service.d/run.conf", "[Service]\nExecStart=\nExecStart=tritonserver\n")
    servers = Looking(droplet).look()
    assert {name: (server.how, server.pid) for name, server in servers.items()} == {
        "triton": ("unit", None),
        "late": ("unit", None),
    }


def test_a_container_that_docker_will_start_again_is_there(droplet: FakeDroplet) -> None:
    droplet.container(ID, "down", Running=False, ExitCode=1)
    droplet.container(OTHER_ID, "other")
    droplet.write(f"/var/lib/docker/containers/{OTHER_ID}/config.v2.json", '{"Name":"/other","Path":"redis"}')
    assert list(Looking(droplet).look()) == ["down"]


def test_a_listed_server_is_there_without_a_process(droplet: FakeDroplet) -> None:
    looking = Looking(droplet, {"name": "mine", "http": 8000, "metrics": 8002}, {"name": "bad", "http": "x"}, {})
    server = looking.look()["mine"]
    assert server.listed
    assert server.endpoints is not None
    assert server.endpoints.metrics is not None
    assert server.endpoints.metrics.address == ("127.0.0.1", 8002)
    droplet.triton(10, cgroup=UNIT_CGROUP.format("triton.service"))
    servers = looking.look(2)
    assert list(servers) == ["mine"]
    assert (servers["mine"].pid, servers["mine"].how, servers["mine"].unit) == (10, "unit", "triton.service")


def test_no_more_servers_than_the_document_may_hold(droplet: FakeDroplet) -> None:
    for number in range(SERVERS + 5):
        droplet.triton(100 + number, f"--http-port={8000 + number}")
    looking = Looking(droplet)
    assert len(looking.look()) == SERVERS
    assert looking.finder.left_out == 5


def test_a_secret_on_the_command_line_is_kept_nowhere(droplet: FakeDroplet) -> None:
    droplet.triton(10, "--http-restricted-api=statistics:admin-key=hunter2")
    assert "hunter2" not in repr(Looking(droplet).look())


def test_a_process_that_names_itself_strangely_does_no_harm(droplet: FakeDroplet) -> None:
    droplet.process(10, "x", comm="tritonserver) S 1 (")
    droplet.process(11, comm="tritonserver")
    droplet.write("/proc/12/stat", "rubbish")
    droplet.write("/proc/13/comm", b"\xff\xfe\n")
    assert Looking(droplet).look(3) == {}


def test_nothing_to_list(droplet: FakeDroplet) -> None:
    (droplet.root / "proc").rename(droplet.root / "gone")
    assert Looking(droplet).look(3) == {}
