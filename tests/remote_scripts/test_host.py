from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

from remote_scripts.call import Call
from remote_scripts.system.host import HostCollector, read_memory

# Captured on Debian 12, kernel 6.18, a virtual machine with two processors.
STAT = """\
cpu  14100 20 7391 283413 1334 30 183 24 7 0
cpu0 4489 10 3094 145370 153 0 18 10 0 0
cpu1 9610 10 4297 138043 1180 0 164 13 0 0
intr 546508 0 0 0 0 0 0 0 1 1 14 0 0
ctxt 1437842
btime 1796057062
processes 35816
procs_running 3
procs_blocked 0
softirq 424229 0 34016 3 30301 224075 0 2 50868 0 84964
"""
MEMINFO = """\
MemTotal:       24684096 kB
MemFree:        23440420 kB
MemAvailable:   23998032 kB
Buffers:          254988 kB
Cached:           283800 kB
SwapCached:            0 kB
SwapTotal:       1048576 kB
SwapFree:        1000000 kB
Dirty:              3020 kB
"""
DISKSTATS = """\
   7       0 loop0 99 0 99 0 99 0 99 0 0 0 0 0 0 0 0 0 0
 254       0 vda 54361 14935 3078490 14796 9674 27410 1944976 3977 0 7312 19078 4815 23 162960 267 1018 36
 254       1 vda1 54000 14935 3078000 14796 9674 27410 1944976 3977 0 7312 19078 4815 23 162960 267 1018 36
 253       0 zram0 5 0 5 0 5 0 5 0 0 0 0 0 0 0 0 0 0
"""
NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0
  eth0: 256585761    6898    0    0    0     0          0         0   473833    4006    0    0    0     0
docker0:   777       29    0    0    0     0          0         0      888      29    0    0    0     0
"""
ROUTE = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
host0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
host0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""


def write(root: Path, path: str, text: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "/proc/stat", STAT)
    write(tmp_path, "/proc/meminfo", MEMINFO)
    write(tmp_path, "/proc/loadavg", "0.35 0.54 0.26 1/659 3351\n")
    write(tmp_path, "/proc/diskstats", DISKSTATS)
    write(tmp_path, "/proc/net/dev", NET_DEV)
    write(tmp_path, "/proc/sys/kernel/hostname", "inference-1\n")
    write(tmp_path, "/proc/sys/kernel/random/boot_id", "ba1008e2-c9bf-46f3-8827-4327e7300ee2\n")
    (tmp_path / "sys/block/vda/device").mkdir(parents=True)
    (tmp_path / "sys/block/loop0").mkdir()
    (tmp_path / "sys/block/zram0").mkdir()
    (tmp_path / "sys/class/net/eth0/device").mkdir(parents=True)
    (tmp_path / "sys/class/net/docker0").mkdir()
    (tmp_path / "sys/class/net/lo").mkdir()
    return tmp_path


def collector(root: Path) -> HostCollector:
    return HostCollector(Call({}, io.BytesIO(), root))


def read(host: HostCollector, *, slow: bool = True) -> tuple[dict[str, Any], dict[str, str]]:
    doc: dict[str, Any] = {}
    unavailable: dict[str, str] = {}
    host.read(doc, unavailable, slow=slow)
    return doc["host"], unavailable


def test_every_figure_of_the_wire_is_read(root: Path) -> None:
    host, unavailable = read(collector(root))
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert unavailable == {}
    assert host["hostname"] == "inference-1"
    assert host["boot_id"] == "ba1008e2-c9bf-46f3-8827-4327e7300ee2"
    assert host["booted"] == 1796057062
    assert host["cpu"] == {
        "cores": 2,
        "user": pytest.approx(14120 * tick),
        "system": pytest.approx((7391 + 30 + 183) * tick),
        "iowait": pytest.approx(1334 * tick),
        "steal": pytest.approx(24 * tick),
        "idle": pytest.approx(283413 * tick),
    }
    assert host["load1"] == 0.35
    assert host["memory"] == {
        "total": 24684096 << 10,
        "available": 23998032 << 10,
        "swap_total": 1048576 << 10,
        "swap_used": (1048576 - 1000000) << 10,
    }
    state = os.statvfs(root)
    assert host["disk"]["total"] == state.f_blocks * state.f_frsize
    assert 0 < host["disk"]["free"] <= host["disk"]["total"]


def test_only_whole_physical_disks_and_physical_interfaces_count(root: Path) -> None:
    host, _ = read(collector(root))
    assert host["io"] == {"read": 3078490 * 512, "write": 1944976 * 512}
    assert host["net"] == {"rx": 256585761, "tx": 473833}


def test_a_disk_that_comes_or_goes_is_neither_a_burst_nor_a_reset(root: Path) -> None:
    host = collector(root)
    first, _ = read(host)
    (root / "sys/block/vdb/device").mkdir(parents=True)
    vdb = " 254      16 vdb 1 0 5000000 0 1 0 6000000 0 0 0 0 0 0 0 0 0 0\n"
    write(root, "/proc/diskstats", DISKSTATS + vdb)
    assert read(host, slow=False)[0]["io"] == first["io"]
    write(root, "/proc/diskstats", DISKSTATS + vdb.replace("5000000", "5000002"))
    assert read(host, slow=False)[0]["io"]["read"] == first["io"]["read"] + 2 * 512
    write(root, "/proc/diskstats", DISKSTATS)
    assert read(host, slow=False)[0]["io"]["read"] == first["io"]["read"] + 2 * 512


def test_a_container_counts_the_interface_of_its_default_route(root: Path) -> None:
    write(root, "/proc/net/dev", NET_DEV.replace("  eth0", " host0").replace("docker0", "    br0"))
    write(root, "/proc/net/route", ROUTE)
    host, unavailable = read(collector(root))
    assert host["net"] == {"rx": 256585761, "tx": 473833}
    assert unavailable == {}


def test_a_virtual_function_is_not_counted_beside_its_master(root: Path) -> None:
    line = NET_DEV.splitlines()[3].replace("  eth0", "  enP1") + "\n"
    write(root, "/proc/net/dev", NET_DEV + line)
    (root / "sys/class/net/enP1/device").mkdir(parents=True)
    (root / "sys/class/net/enP1/master").symlink_to(root / "sys/class/net/eth0")
    assert read(collector(root))[0]["net"] == {"rx": 256585761, "tx": 473833}


def test_the_members_of_a_bond_count_and_the_bond_does_not(root: Path) -> None:
    (root / "sys/class/net/bond0").mkdir()
    (root / "sys/class/net/eth0/master").symlink_to(root / "sys/class/net/bond0")
    write(root, "/proc/net/dev", NET_DEV + NET_DEV.splitlines()[3].replace("  eth0", " bond0") + "\n")
    assert read(collector(root))[0]["net"] == {"rx": 256585761, "tx": 473833}


def test_the_file_system_is_asked_only_on_slow_ticks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = collector(root)
    first, _ = read(host)

    def refuse(_: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(os, "statvfs", refuse)
    assert read(host, slow=False)[0]["disk"] == first["disk"]


def test_a_wavering_boot_time_stays_put_and_a_set_clock_shows(root: Path) -> None:
    host = collector(root)
    read(host)
    write(root, "/proc/stat", STAT.replace("1796057062", "1796057063"))
    assert read(host)[0]["booted"] == 1796057062
    write(root, "/proc/stat", STAT.replace("1796057062", "1796060000"))
    assert read(host)[0]["booted"] == 1796060000


@pytest.mark.parametrize(
    ("path", "text", "missing"),
    [
        ("/proc/stat", "cpu garbage\n", {"/host/cpu", "/host/booted"}),
        ("/proc/stat", "", {"/host/cpu", "/host/booted"}),
        ("/proc/loadavg", "", {"/host/load1"}),
        ("/proc/meminfo", "MemTotal: lots\n", {"/host/memory"}),
        ("/proc/meminfo", "MemTotal: 1 kB\n", {"/host/memory"}),
        ("/proc/diskstats", "half a li", {"/host/io"}),
        ("/proc/net/dev", "a\nb\neth0: x\n", {"/host/net"}),
    ],
)
def test_what_cannot_be_understood_is_left_out_with_its_reason(
    root: Path, path: str, text: str, missing: set[str]
) -> None:
    write(root, path, text)
    host, unavailable = read(collector(root))
    assert set(unavailable) == missing
    assert all(unavailable.values())
    assert not {pointer.rpartition("/")[2] for pointer in missing} & set(host)
    assert "hostname" in host


def test_nothing_readable_at_all_is_a_document_of_reasons(tmp_path: Path) -> None:
    host, unavailable = read(collector(tmp_path / "nothing"))
    assert host == {}
    assert set(unavailable) == {
        f"/host/{key}" for key in ("hostname", "boot_id", "cpu", "booted", "load1", "memory", "disk", "io", "net")
    }


def test_a_hostile_host_name_is_cut(root: Path) -> None:
    write(root, "/proc/sys/kernel/hostname", "\x1b]0;x\x07" + "a" * 5000)
    assert len(read(collector(root))[0]["hostname"]) == 512


def test_the_real_machine_answers() -> None:
    host, unavailable = read(collector(Path("/")))
    assert {"hostname", "boot_id", "cpu", "booted", "load1", "memory", "disk"} <= set(host)
    assert host["cpu"]["cores"] == os.sysconf("SC_NPROCESSORS_ONLN")
    assert set(unavailable) <= {"/host/io", "/host/net"}
    assert read_memory("/proc/meminfo")["total"] == host["memory"]["total"]
