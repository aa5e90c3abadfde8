from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from remote_scripts.call import Call
from remote_scripts.gpu.holders import Holders
from remote_scripts.system.cgroups import container_of, is_deleted, unit_of
from remote_scripts.system.processes import stub_model

GPU = "GPU-1"
ID = "4f5c" * 16
HOST_NAMESPACE = "pid:[4026531836]"
# Captured from server 2.51.0 (a model's instance, its number 336 a pipe handle).
STUB_LINE = [
    "/opt/tritonserver/backends/python/triton_python_backend_stub",
    "repo/echo1/1/model.py",
    "triton_python_backend_shm_region_3510e529-bb0d-4e6b-ab50-0b38feee56b4",
    "1048576",
    "1048576",
    "22947",
    "/opt/tritonserver/backends/python",
    "336",
    "echo1_0_0",
    "DEFAULT",
]
V1 = """\
9:name=systemd:/
8:pids:/
4:memory:/process_api/e536575f752efa9797c9de7bb6cd26e1
0::/
"""


class Proc:
    """A /proc made of captured lines, and a Docker beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "proc/self/ns").mkdir(parents=True)
        self.namespace(HOST_NAMESPACE)
        (root / "bin").mkdir()

    def namespace(self, link: str) -> None:
        path = self.root / "proc/self/ns/pid"
        path.unlink(missing_ok=True)
        path.symlink_to(link)

    def add(
        self,
        pid: int,
        name: str,
        *,
        parent: int = 1,
        line: Sequence[str] = (),
        cgroup: str = "0::/\n",
        state: str = "S",
        started: int = 135698,
    ) -> None:
        folder = self.root / f"proc/{pid}"
        folder.mkdir(exist_ok=True)
        rest = "22947 22947 0 -1 4194304 5127 0 0 0 19 3 0 0 20 0 5 0"
        (folder / "stat").write_text(f"{pid} ({name}) {state} {parent} {rest} {started} 244174848 7694\n")
        (folder / "comm").write_text(f"{name[:15]}\n")
        (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in line))
        (folder / "cgroup").write_text(cgroup)

    def end(self, pid: int) -> None:
        folder = self.root / f"proc/{pid}"
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    def docker(self, identity: str, name: str, *, running: bool = True) -> None:
        folder = self.root / "var/lib/docker/containers" / identity
        folder.mkdir(parents=True, exist_ok=True)
        config = {"ID": identity, "Name": f"/{name}", "State": {"Running": running, "Pid": 7}}
        (folder / "hostconfig.json").write_text("{}")
        # Docker replaces its files; the store tells by their time.
        (folder / "config.v2.json.new").write_text(json.dumps(config))
        (folder / "config.v2.json.new").replace(folder / "config.v2.json")

    def docker_command(self, script: str) -> None:
        tool = self.root / "bin/docker"
        tool.write_text(f"#!/bin/sh\necho \"$@\" >>'{self.root}/asked'\n{script}\n")
        tool.chmod(0o755)

    @property
    def asked(self) -> int:
        file = self.root / "asked"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def holders(self) -> Holders:
        return Holders(Call({}, io.BytesIO(), self.root, [str(self.root / "bin"), "/usr/bin", "/bin"]))


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def read_one(
    holders: Holders, pid: int, memory: int | None = 1000, servers: dict[int, str] | None = None
) -> dict[str, Any]:
    found, _ = holders.read({GPU: [(pid, memory)]}, servers or {})
    (holder,) = found[GPU]
    return holder


def test_a_plain_process_in_a_unit(proc: Proc) -> None:
    proc.add(50, "train (v2) x", line=["/usr/bin/train"], cgroup="0::/system.slice/train.service\n")
    assert read_one(proc.holders(), 50) == {
        "pid": 50,
        "process": "train (v2) x",
        "memory": 1000,
        "unit": "train.service",
    }


def test_a_name_that_the_kernel_cut_is_completed_from_the_command_line(proc: Proc) -> None:
    proc.add(50, "triton_python_b", line=STUB_LINE, parent=22947)
    assert read_one(proc.holders(), 50)["process"] == "triton_python_backend_stub"


def test_a_python_models_stub_is_told_by_model_and_server(proc: Proc) -> None:
    proc.add(22947, "tritonserver", cgroup="0::/system.slice/triton.service\n")
    proc.add(23333, "triton_python_b", parent=22947, line=STUB_LINE, cgroup="0::/system.slice/triton.service\n")
    holder = read_one(proc.holders(), 23333, servers={22947: "triton"})
    assert holder["model"] == "echo1"
    assert holder["server"] == "triton"
    assert holder["unit"] == "triton.service"
    assert "orphan" not in holder


def test_the_server_itself_has_no_model(proc: Proc) -> None:
    proc.add(22947, "tritonserver")
    holder = read_one(proc.holders(), 22947, servers={22947: "triton"})
    assert holder["server"] == "triton"
    assert "model" not in holder


def test_a_models_own_workers_belong_to_it(proc: Proc) -> None:
    proc.add(10, "tritonserver")
    proc.add(11, "triton_python_b", parent=10, line=STUB_LINE)
    proc.add(12, "VLLM::EngineCor", parent=11, line=["VLLM::EngineCore"])
    holder = read_one(proc.holders(), 12, servers={10: "triton"})
    assert (holder["model"], holder["server"], holder["process"]) == ("echo1", "triton", "VLLM::EngineCore")


def test_a_stub_that_outlived_its_server_is_an_orphan(proc: Proc) -> None:
    proc.add(11, "triton_python_b", parent=1, line=STUB_LINE)
    assert read_one(proc.holders(), 11)["orphan"] is True


@pytest.mark.parametrize(
    ("file", "instance", "model"),
    [
        ("repo/echo1/1/model.py", "echo1_0_0", "echo1"),
        ("/models/bert_large_2/12/model.py", "bert_large_2_0_1", "bert_large_2"),
        ("repo/echo1/1/model.py", "echo1", "echo1"),
        ("/models/m/1/model.py", "m_group_0", "m"),
        ("/opt/tritonserver/backends/vllm/model.py", "llama_0_0", "llama"),
        ("/tmp/folderXk21/1/model.py", "resnet_0_0", "resnet"),
        ("/tmp/folderXk21/1/model.py", "odd", "odd"),
    ],
)
def test_the_model_of_a_stub(file: str, instance: str, model: str) -> None:
    assert stub_model([STUB_LINE[0], file, *STUB_LINE[2:8], instance, "DEFAULT"]) == model


@pytest.mark.parametrize("line", [[], [""], ["python3", "x"], [STUB_LINE[0]], [STUB_LINE[0], "/"], ["/", "/", "/"]])
def test_any_other_command_line_names_no_model(line: list[str]) -> None:
    assert stub_model(line) is None


@pytest.mark.parametrize(
    ("cgroup", "container", "unit"),
    [
        ("0::/system.slice/triton.service\n", None, "triton.service"),
        ("0::/system.slice/triton.service/payload\n", None, "triton.service"),
        ("0::/user.slice/user-0.slice/session-3.scope\n", None, "session-3.scope"),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service\n",
            None,
            "x.service",
        ),
        (f"0::/system.slice/docker-{ID}.scope\n", ("docker", ID), None),
        (f"0::/docker/{ID}\n", ("docker", ID), None),
        (f"12:cpu:/docker/{ID}\n1:name=systemd:/docker/{ID}\n0::/\n", ("docker", ID), None),
        (f"0::/machine.slice/libpod-{ID}.scope/container\n", ("libpod", ID), None),
        (
            f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n",
            ("cri-containerd", ID),
            None,
        ),
        (f"0::/kubepods/besteffort/pod1/{ID}\n", ("pod1", ID), None),
        ("9:name=systemd:/system.slice/a.service\n8:pids:/system.slice/a.service\n0::/\n", None, "a.service"),
        (V1, None, None),
        ("", None, None),
        ("nonsense", None, None),
    ],
)
def test_control_groups_of_both_versions(cgroup: str, container: tuple[str, str] | None, unit: str | None) -> None:
    assert container_of(cgroup) == container
    if container is None:
        assert unit_of(cgroup) == unit


def test_a_removed_control_group_is_told() -> None:
    assert is_deleted("0::/system.slice/a.service (deleted)\n")
    assert not is_deleted("0::/system.slice/a.service\n")


def test_a_container_is_named_from_dockers_own_file(proc: Proc) -> None:
    proc.docker(ID, "triton-a")
    proc.add(60, "tritonserver", cgroup=f"0::/system.slice/docker-{ID}.scope\n")
    proc.docker_command("exit 1")
    holder = read_one(proc.holders(), 60)
    assert holder["container"] == "triton-a"
    assert "unit" not in holder
    assert "orphan" not in holder
    assert proc.asked == 0


def test_a_container_that_docker_has_as_ended_is_an_orphans(proc: Proc) -> None:
    proc.docker(ID, "triton-a")
    proc.add(60, "tritonserver", cgroup=f"0::/docker/{ID}\n")
    holders = proc.holders()
    assert "orphan" not in read_one(holders, 60)
    proc.docker(ID, "triton-a", running=False)
    assert read_one(holders, 60)["orphan"] is True


def test_docker_is_asked_once_where_its_files_are_elsewhere(proc: Proc) -> None:
    answer = json.dumps({"id": ID, "name": "/triton-b", "running": True})
    proc.docker_command(f"echo '{answer}'")
    proc.add(60, "tritonserver", cgroup=f"0::/docker/{ID}\n")
    holders = proc.holders()
    assert [read_one(holders, 60)["container"] for _ in range(3)] == ["triton-b"] * 3
    assert proc.asked == 1


def test_a_container_that_docker_does_not_know_is_an_orphans(proc: Proc) -> None:
    proc.docker_command(f"echo 'Error: No such container: {ID}' >&2; exit 1")
    proc.add(60, "tritonserver", cgroup=f"0::/docker/{ID}\n")
    holder = read_one(proc.holders(), 60)
    assert (holder["container"], holder["orphan"]) == (ID[:12], True)


@pytest.mark.parametrize("script", ["exit 1", "echo nonsense", "echo '{}'", "echo '[1]'"])
def test_of_a_docker_that_does_not_answer_nothing_follows(proc: Proc, script: str) -> None:
    proc.docker_command(script)
    proc.add(60, "tritonserver", cgroup=f"0::/docker/{ID}\n")
    holder = read_one(proc.holders(), 60)
    assert holder["container"] == ID[:12]
    assert "orphan" not in holder


def test_docker_is_not_asked_for_other_runtimes_containers(proc: Proc) -> None:
    proc.docker_command(f"echo 'Error: No such container: {ID}' >&2; exit 1")
    proc.add(60, "python3", cgroup=f"0::/machine.slice/libpod-{ID}.scope\n")
    holder = read_one(proc.holders(), 60)
    assert holder["container"] == ID[:12]
    assert "orphan" not in holder
    assert proc.asked == 0


def test_memory_of_a_process_that_is_gone_keeps_its_name(proc: Proc) -> None:
    proc.docker(ID, "triton-a")
    proc.add(60, "tritonserver", cgroup=f"0::/docker/{ID}\n")
    holders = proc.holders()
    read_one(holders, 60)
    proc.end(60)
    assert holders.gone({GPU: [(60, 1)]}) == [GPU]
    holder = read_one(holders, 60)
    assert holder == {"pid": 60, "process": "tritonserver", "container": "triton-a", "orphan": True, "memory": 1000}


def test_a_process_that_was_never_seen_and_is_gone(proc: Proc) -> None:
    assert read_one(proc.holders(), 60) == {"pid": 60, "process": "no such process", "orphan": True, "memory": 1000}


def test_an_id_that_another_process_took_over_is_that_one(proc: Proc) -> None:
    proc.add(60, "first", line=["first"])
    holders = proc.holders()
    assert read_one(holders, 60)["process"] == "first"
    proc.add(60, "second", line=["second"], started=999999)
    assert read_one(holders, 60)["process"] == "second"


def test_a_zombie_holds_for_nobody(proc: Proc) -> None:
    proc.add(60, "python3", state="Z")
    assert read_one(proc.holders(), 60)["orphan"] is True


def test_inside_a_container_the_hosts_ids_name_nobody(proc: Proc) -> None:
    proc.namespace("pid:[4026532999]")
    proc.add(60, "sh")
    (proc.root / "proc/60/maps").write_text("7f00-7f01 r-xp 00000000 fe:00 1 /lib/libc.so.6\n")
    holders = proc.holders()
    found, reasons = holders.read({GPU: [(60, 1), (61, 2)]}, {})
    assert found[GPU] == [{"pid": 60, "memory": 1}, {"pid": 61, "memory": 2}]
    assert set(reasons) == {(GPU, "holders/0/process"), (GPU, "holders/1/process")}
    assert holders.gone({GPU: [(61, 1)]}) == []


def test_inside_a_container_a_process_with_the_driver_mapped_is_itself(proc: Proc) -> None:
    proc.namespace("pid:[4026532999]")
    proc.add(60, "tritonserver")
    (proc.root / "proc/60/maps").write_text("7f00-7f01 r-xp 00000000 fe:00 1 /usr/lib/libcuda.so.580.95.05\n")
    assert read_one(proc.holders(), 60)["process"] == "tritonserver"


def test_memory_that_the_driver_does_not_tell_has_its_reason(proc: Proc) -> None:
    proc.add(60, "python3")
    found, reasons = proc.holders().read({GPU: [(60, None)]}, {})
    assert found[GPU] == [{"pid": 60, "process": "python3"}]
    assert reasons == {(GPU, "holders/0/memory"): "the driver does not say how much"}


def test_a_crowd_is_bounded(proc: Proc) -> None:
    rows: list[tuple[int, int | None]] = [(pid, 1) for pid in range(100000, 101000)]
    found, reasons = proc.holders().read({GPU: rows}, {})
    assert len(found[GPU]) == 256
    assert reasons[GPU, "holders/256"].startswith("744 ")


def test_hostile_names_are_cut_and_crash_nothing(proc: Proc) -> None:
    proc.add(60, "\x1b[31m)(", line=["\x1b]0;" + "a" * 9000])
    proc.docker(ID, "x" * 9000)
    proc.add(61, ")", cgroup=f"0::/docker/{ID}\n")
    holders = proc.holders()
    assert read_one(holders, 60)["process"] == "\x1b[31m)("
    assert len(read_one(holders, 61)["container"]) == 512


def test_garbage_in_proc_is_no_process(proc: Proc) -> None:
    proc.add(60, "x")
    (proc.root / "proc/60/stat").write_text("60 no parentheses")
    assert read_one(proc.holders(), 60)["orphan"] is True
