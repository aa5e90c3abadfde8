from __future__ import annotations

from pathlib import Path

import pytest

from remote_scripts.facts_parts import (
    facts_cloud_init,
    facts_disks,
    facts_docker,
    facts_firewall,
    facts_gpu,
    facts_os,
    facts_resolver,
    facts_units,
)
from remote_scripts.facts_parts.facts_part import NotThere
from tests.remote_scripts.facts_lab import DATA, Pretended


@pytest.fixture
def droplet(tmp_path: Path) -> Pretended:
    return Pretended(tmp_path)


def test_the_operating_system_by_os_release(droplet: Pretended) -> None:
    droplet.file(
        "/etc/os-release", "# os\nID=ubuntu\nVERSION_ID=\"24.04\"\nPRETTY_NAME='Ubuntu 24.04 LTS'\nFOO=x\n"
    )
    found, _ = droplet.read(facts_os.read_os)
    assert found == {"id": "ubuntu", "version_id": "24.04", "pretty_name": "Ubuntu 24.04 LTS"}


def test_a_waiting_reboot_names_its_packages(droplet: Pretended) -> None:
    droplet.file("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n")
    droplet.file("/run/reboot-required", "*** System restart required ***\n")
    droplet.file("/run/reboot-required.pkgs", "linux-base\nlinux-image\nlinux-base\n")
    found, _ = droplet.read(facts_os.read_kernel)
    assert found["release"] == "6.8.0-45-generic"
    assert found["reboot_required"] is True
    assert found["reboot_packages"] == ["linux-base", "linux-image"]


def test_a_droplets_id_by_its_firmware(droplet: Pretended) -> None:
    droplet.file("/sys/class/dmi/id/sys_vendor", "DigitalOcean\n")
    droplet.file("/sys/class/dmi/id/product_serial", "412345678\n")
    assert droplet.read(facts_os.read_machine)[0] == {"vendor": "DigitalOcean", "serial": "412345678"}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, {"status": "not installed"}),
        ({"/run/cloud-init/disabled": ""}, {"status": "disabled"}),
        ({"/run/cloud-init/.ds-identify.result": ""}, {"status": "not started"}),
        ({"/run/cloud-init/status.json": '{"v1": {"stage": "modules-config"}}'},
         {"status": "running", "stage": "modules-config"}),
        ({"/run/cloud-init/result.json": '{"v1": {"datasource": "DataSourceDigitalOcean", "errors": []}}'},
         {"status": "done", "errors": [], "datasource": "DataSourceDigitalOcean"}),
        ({"/run/cloud-init/result.json": '{"v1": {"errors": ["(\'scripts-user\', ...)"]}}'},
         {"status": "error", "errors": ["('scripts-user', ...)"], "datasource": ""}),
    ],
)  # fmt: skip
def test_how_far_cloud_init_is(droplet: Pretended, files: dict[str, str], found: dict[str, object]) -> None:
    for path, text in files.items():
        droplet.file(path, text)
    assert droplet.read(facts_cloud_init.read)[0] == found


def test_recoverable_errors_of_cloud_init_are_kept(droplet: Pretended) -> None:
    droplet.file("/run/cloud-init/result.json", '{"v1": {"errors": []}}')
    droplet.file(
        "/run/cloud-init/status.json",
        '{"v1": {"stage": null, "init": {"recoverable_errors": {"WARNING": ["deprecated key"], "X": 5}}}}',
    )
    found, _ = droplet.read(facts_cloud_init.read)
    assert found["status"] == "done"
    assert found["recoverable"] == ["deprecated key"]


def test_a_driver_whose_library_was_upgraded_under_it(droplet: Pretended) -> None:
    droplet.file(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
        "GCC version:  gcc version 12.2.0\n",
    )
    droplet.file(
        "/proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 64\nGPU UUID: \t GPU-1234\nGPU Firmware: \t 550.54.15\n",
    )
    droplet.file("/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n")
    droplet.file("/proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 nvidia_uvm, Live 0x0\n")
    droplet.file("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "")
    droplet.file("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.575.51.03", "")
    for name, text in (("vendor", "0x10de\n"), ("class", "0x030200\n"), ("device", "0x2330\n")):
        droplet.file(f"/sys/bus/pci/devices/0000:01:00.0/{name}", text)
    droplet.tool("nvidia-smi", "Failed to initialize NVML: Driver/library version mismatch\n", status=18)
    found, _ = droplet.read(facts_gpu.read)
    assert found == {
        "bus": [{"address": "0000:01:00.0", "device": "0x2330"}],
        "modules": ["nvidia", "nvidia_uvm"],
        "devices": [
            {"bus": "0000:01:00.0", "model": "NVIDIA H100 80GB HBM3", "uuid": "GPU-1234", "firmware": "550.54.15"}
        ],
        "module_version": "550.54.15",
        "library_version": "575.51.03",
        "profiling_admin_only": True,
        "nvidia_smi": {"status": 18, "text": "Failed to initialize NVML: Driver/library version mismatch"},
    }


def test_the_open_kernel_module_has_a_version_too(droplet: Pretended) -> None:
    droplet.file(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.51.03  Release Build  (dvs-builder@U16)\n",
    )
    assert droplet.read(facts_gpu.read)[0]["module_version"] == "575.51.03"


def test_a_droplet_without_a_gpu_runs_no_tool(droplet: Pretended) -> None:
    assert droplet.read(facts_gpu.read) == ({"bus": [], "modules": [], "devices": []}, {})


def test_an_nvidia_smi_that_hangs_is_given_up(droplet: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_gpu, "_PATIENCE", 0.2)
    droplet.tool("nvidia-smi", script="exec sleep 600")
    found, missing = droplet.read(facts_gpu.read, "gpu")
    assert "nvidia_smi" not in found
    assert missing == {"/gpu/nvidia_smi": "nvidia-smi did not answer within 0.2 s"}


def test_docker_that_does_not_run_is_not_started_by_asking(droplet: Pretended) -> None:
    droplet.tool("docker", script=f"touch {droplet.root}/asked")
    found, missing = droplet.read(facts_docker.read, "docker")
    assert found["installed"] is True
    assert found["running"] is False
    assert missing["/docker/version"] == "Docker does not run"
    assert not (droplet.root / "asked").exists()


def test_docker_with_nvidias_runtime(droplet: Pretended) -> None:
    droplet.file("/run/docker.pid", "61")
    droplet.file("/proc/61/comm", "dockerd\n")
    droplet.file("/etc/docker/daemon.json", '{"default-runtime": "nvidia"}')
    droplet.file("/etc/cdi/nvidia.yaml", "")
    droplet.tool("nvidia-ctk", "NVIDIA Container Toolkit CLI version 1.17.8\ncommit: x\n")
    droplet.tool("nvidia-container-runtime")
    droplet.tool(
        "docker",
        script='if [ "$1" = info ]; then echo \'{"ServerVersion":"28.1.1","Runtimes":{"runc":{},"nvidia":{}},'
        '"DefaultRuntime":"nvidia","LiveRestoreEnabled":true,"CgroupDriver":"systemd","DockerRootDir":"/d"}\'; '
        'else echo \'{"Names":"triton","Image":"tritonserver:24.10-py3","State":"running","Status":"Up 2 hours",'
        '"Ports":"0.0.0.0:8000->8000/tcp"}\'; fi',
    )
    found, missing = droplet.read(facts_docker.read, "docker")
    assert missing == {}
    assert found["gpu"] == {
        "runtime_installed": True,
        "cdi": ["/etc/cdi/nvidia.yaml"],
        "toolkit": "NVIDIA Container Toolkit CLI version 1.17.8",
    }
    assert (found["version"], found["default_runtime"], found["live_restore"]) == ("28.1.1", "nvidia", True)
    assert found["runtimes"] == ["nvidia", "runc"]
    assert found["containers"] == [
        {
            "name": "triton",
            "image": "tritonserver:24.10-py3",
            "state": "running",
            "status": "Up 2 hours",
            "ports": "0.0.0.0:8000->8000/tcp",
        }
    ]


def test_a_docker_that_answers_for_its_daemon_is_not_believed(droplet: Pretended) -> None:
    droplet.file("/run/docker.pid", "61")
    droplet.file("/proc/61/comm", "dockerd\n")
    droplet.tool("docker", '{"ServerErrors":["permission denied while trying to connect"]}\n')
    found, missing = droplet.read(facts_docker.read, "docker")
    assert "version" not in found
    assert missing["/docker/version"] == "permission denied while trying to connect"


def test_ufw_by_its_files(droplet: Pretended) -> None:
    droplet.file("/etc/ufw/ufw.conf", "# /etc/ufw/ufw.conf\nENABLED=yes\nLOGLEVEL=low\n")
    droplet.file("/etc/default/ufw", 'IPV6=yes\nDEFAULT_INPUT_POLICY="DROP"\nDEFAULT_OUTPUT_POLICY="ACCEPT"\n')
    droplet.file("/etc/ufw/user.rules", (DATA / "user.rules").read_text(encoding="utf-8"))
    droplet.tool("iptables-save", "*filter\n-P INPUT DROP\n")
    droplet.file("/proc/net/ip_tables_names", "filter\n")
    droplet.tool("iptables-legacy-save", "*filter\n-A INPUT -j DROP\n")
    found, missing = droplet.read(facts_firewall.read, "firewall")
    assert found["ufw"]["enabled"] is True
    assert found["ufw"]["incoming"] == "DROP"
    assert found["ufw"]["rules"] == [
        "allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in",
        "allow tcp 8000:8002 0.0.0.0/0 any 10.0.0.0/8 in comment=747269746f6e7320706f727473",
        "deny tcp 8001 0.0.0.0/0 any 0.0.0.0/0 in_host0",
        "limit_log tcp 2222 0.0.0.0/0 any 0.0.0.0/0 in",
        "allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 SSH - in",
        "route:allow tcp 8000 172.17.0.2 any 0.0.0.0/0 in",
    ]
    assert found["iptables"].startswith("*filter")
    assert found["iptables_legacy"].endswith("-j DROP\n")
    assert missing["/firewall/nft"] == "nft is not installed"
    assert "/firewall/iptables_legacy" not in missing


def test_rules_beyond_the_limit_are_cut_and_said_to_be(droplet: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_firewall, "_LIMIT", 1024)
    droplet.tool("nft", "x" * 5000)
    found, missing = droplet.read(facts_firewall.read, "firewall")
    assert len(found["nft"]) == 1024
    assert missing["/firewall/nft"] == "only the first 1 KiB are here"
    assert found["ufw"] is None


def test_a_tool_that_fails_says_why(droplet: Pretended) -> None:
    droplet.tool("nft", script="echo 'Operation not permitted (you must be root)' >&2; exit 1")
    _, missing = droplet.read(facts_firewall.read, "firewall")
    assert missing["/firewall/nft"] == "nft: Operation not permitted (you must be root)"


@pytest.mark.parametrize(
    ("target", "mode"),
    [
        ("../run/systemd/resolve/stub-resolv.conf", "stub"),
        ("../run/systemd/resolve/resolv.conf", "uplink"),
        ("../usr/lib/systemd/resolv.conf", "static"),
        ("../run/resolvconf/resolv.conf", "foreign"),
    ],
)
def test_whose_resolv_conf_it_is(droplet: Pretended, target: str, mode: str) -> None:
    droplet.file(target.removeprefix(".."), "nameserver 127.0.0.53\n")
    droplet.link("/etc/resolv.conf", target)
    found, _ = droplet.read(facts_resolver.read)
    assert found["mode"] == mode
    assert found["nameservers"] == ["127.0.0.53"]


def test_a_plain_resolv_conf(droplet: Pretended) -> None:
    text = "# by hand\ndomain a\nsearch b c\nnameserver 67.207.67.2\nnameserver 67.207.67.3\noptions edns0 rotate\n"
    droplet.file("/etc/resolv.conf", text)
    droplet.file("/etc/nsswitch.conf", "passwd: files\nhosts: files mdns4 dns # order\n")
    droplet.file("/etc/gai.conf", "#precedence ::ffff:0:0/96  10\nprecedence ::ffff:0:0/96  100\n")
    found, missing = droplet.read(facts_resolver.read, "resolver")
    assert found == {
        "mode": "foreign",
        "text": text,
        "nameservers": ["67.207.67.2", "67.207.67.3"],
        "search": ["b", "c"],
        "options": ["edns0", "rotate"],
        "hosts_order": ["files", "mdns4", "dns"],
        "prefers_ipv4": True,
    }
    assert missing == {"/resolver/resolved": "systemd-resolved does not run"}


def test_no_resolv_conf(droplet: Pretended) -> None:
    found, missing = droplet.read(facts_resolver.read, "resolver")
    assert found["mode"] == "missing"
    assert missing["/resolver/nameservers"] == "/etc/resolv.conf cannot be read: No such file or directory"


def test_a_resolved_that_hangs_is_given_up(droplet: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_resolver, "_PATIENCE", 0.2)
    (droplet.root / "run/systemd/resolve").mkdir(parents=True)
    droplet.tool("resolvectl", script="exec sleep 600")
    _, missing = droplet.read(facts_resolver.read, "resolver")
    assert missing["/resolver/resolved"] == "resolvectl did not answer within 0.2 s"


def test_units_of_interest(droplet: Pretended) -> None:
    droplet.file(
        "/etc/systemd/system/my-triton.service", "[Service]\nExecStart=/opt/tritonserver/bin/tritonserver\n"
    )
    droplet.tool(
        "systemctl",
        script=f"""case "$1" in
is-system-running) echo degraded; exit 1;;
list-units) echo 'nvidia-persistenced.service loaded failed failed NVIDIA Persistence Daemon';;
show) echo "$@" >> {droplet.root}/asked
printf 'Id=ssh.service\\nLoadState=loaded\\nActiveState=active\\nSubState=running\\nNRestarts=2\\nMainPID=54\\n'
printf 'NeedDaemonReload=yes\\n\\nId=ufw.service\\nLoadState=not-found\\nActiveState=inactive\\n';;
esac""",
    )
    found, missing = droplet.read(facts_units.read, "units")
    assert missing == {}
    assert found["state"] == "degraded"
    assert found["failed"] == ["nvidia-persistenced.service"]
    assert set(found["units"]) == {"ssh.service"}
    ssh = found["units"]["ssh.service"]
    assert (ssh["active"], ssh["restarts"], ssh["pid"], ssh["reload_needed"]) == ("active", 2, 54, True)
    assert "my-triton.service" in (droplet.root / "asked").read_text(encoding="utf-8")


def test_without_systemd_there_are_no_units(droplet: Pretended) -> None:
    with pytest.raises(NotThere, match="systemctl is not installed"):
        droplet.read(facts_units.read)
    droplet.tool("systemctl", "offline\n", status=1)
    with pytest.raises(NotThere, match="systemd does not run here"):
        droplet.read(facts_units.read)


def test_disks_once_each_and_network_ones_unmeasured(droplet: Pretended) -> None:
    for folder in ("data disk", "srv", "models"):
        (droplet.root / folder).mkdir()
    droplet.file(
        "/proc/self/mounts",
        "proc /proc proc rw 0 0\noverlay / overlay rw 0 0\n/dev/vdb /data\\040disk ext4 ro,noatime 0 0\n"
        "/dev/vdb /srv ext4 rw 0 0\nnas:/m /models nfs4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nbroken\n",
    )
    found, missing = droplet.read(facts_disks.read, "disks")
    assert [(disk["mount"], disk["type"], disk["read_only"]) for disk in found] == [
        ("/", "overlay", False),
        ("/data disk", "ext4", True),
        ("/models", "nfs4", False),
    ]
    assert found[0]["total"] > 0
    assert "total" not in found[2]
    assert missing == {"/disks/2/total": "it is on the network, and asking could hang"}
