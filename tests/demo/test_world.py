"""The practice droplet's story, told by the real readers of the remote scripts, in seconds instead of minutes."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.demo import timeline
from console.demo.ports import Ports
from console.demo.root import Root
from console.demo.world import World
from remote_scripts.call import Call
from remote_scripts.gpu.gpm import SHORTEST
from remote_scripts.gpu.gpu_reader import GpuReader
from remote_scripts.system.host import HostCollector
from remote_scripts.triton.config import read_config
from remote_scripts.triton.metrics import MetricsReader
from remote_scripts.triton.stats import read_index, read_statistics
from tests.remote_scripts.fake_droplet import Lines

DATA = Path(__file__).parents[1] / "data/triton"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A world whose time the test moves, and the readers that run on a droplet."""

    def __init__(self, folder: Path) -> None:
        self.root = Root(folder)
        self.root.build()
        self.clock = Clock()
        self.world = World(self.root, Ports(18000, 18002), clock=self.clock)
        self.world.write()
        self.call = Call({}, Lines(), folder, [str(self.root.bin)])
        self.gpus = GpuReader(self.call, gpm=True)
        self.host = HostCollector(self.call)
        self.metrics = MetricsReader()

    def after(self, seconds: float) -> None:
        """The moment so many seconds after the start."""
        self.clock.now = 1000.0 + seconds
        self.world.write()

    def gpu(self, *, slow: bool = True, servers: dict[int, str] | None = None) -> dict[str, Any]:
        look = self.gpus.read(self.clock.now, slow, servers or {})
        assert look.gpus is not None, look.unavailable
        (found,) = look.gpus.values()
        return found

    def json(self, path: str, method: str = "GET") -> bytes:
        status, answer = self.world.answer(method, path)
        assert status == 200
        return json.dumps(answer).encode()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    found = Watched(tmp_path)
    yield found
    found.gpus.close()


def test_its_statistics_have_the_shape_of_a_real_triton(watched: Watched) -> None:
    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shape(held) for key, held in value.items()}
        return shape(value[0]) if isinstance(value, list) and value else type(value)

    watched.after(60)
    mine = json.loads(watched.json("/v2/models/stats"))["model_stats"]
    real = json.loads((DATA / "streaming/stats.json").read_bytes())["model_stats"]
    whisper = next(one for one in mine if one["name"] == "sim_whisper")
    assert shape(whisper) == shape(next(one for one in real if one["name"] == "curve"))
    language = next(one for one in mine if one["name"] == "sim_llm")
    stream = next(one for one in real if one["name"] == "vllm_model")
    assert shape(language) == shape(stream)


def test_the_readers_understand_all_of_it(watched: Watched) -> None:
    watched.after(60)
    statistics = read_statistics(watched.json("/v2/models/stats"))
    assert statistics.skipped == 0
    assert len(statistics.models) == 5
    index = read_index(watched.json("/v2/repository/index", "POST"))
    assert set(index) == set(statistics.models)
    status, page = watched.world.answer("GET", "/metrics")
    metrics = watched.metrics.read(page.encode())
    assert (status, metrics.garbage) == (200, 0)
    for key, fields in statistics.models.items():
        assert metrics.models[key].fields["metrics_success"] == fields["success"]
        assert metrics.models[key].p95
    config = read_config(watched.json("/v2/models/sim_whisper/versions/1/config"))
    assert (config["scheduling"], config["max_batch_size"]) == ("dynamic_batching", 8)
    assert read_config(watched.json("/v2/models/sim_llm/versions/1/config"))["in_flight_batching"]


def test_everything_says_that_it_is_not_real(watched: Watched) -> None:
    assert "stand-in" in json.loads(watched.json("/v2"))["version"]
    index = json.loads(watched.json("/v2/repository/index", "POST"))
    assert all(entry["name"].startswith("sim_") for entry in index)
    assert watched.gpu()["name"].endswith("(simulated)")


def test_the_gpu_is_read_through_the_real_nvml_reader(watched: Watched) -> None:
    watched.after(20)
    watched.gpu()
    time.sleep(SHORTEST + 0.01)
    watched.after(21)
    gpu = watched.gpu(servers={1601: "triton-standin"})
    assert gpu["state"] == "ok"
    assert gpu["arch"] == "Hopper"
    assert gpu["dram_source"] == "gpm"
    assert 0 < gpu["dram_percent"] < 100
    assert gpu["memory_used"] + gpu["memory_free"] + gpu["memory_reserved"] == gpu["memory_total"] == 80 << 30
    assert gpu["max_memory_clock_mhz"] * 2 * gpu["bus_width_bits"] / 8 / 1000 == pytest.approx(3352, abs=1)
    assert [holder["process"] for holder in gpu["holders"]] == ["tritonserver", "VLLM::EngineCore"]
    assert {holder["server"] for holder in gpu["holders"]} == {"triton-standin"}
    assert sum(holder["memory"] for holder in gpu["holders"]) == gpu["memory_used"]
    assert watched.gpus.read(watched.clock.now, True, {}).unavailable == {}


def test_the_host_moves_and_never_goes_back(watched: Watched) -> None:
    seen: list[dict[str, Any]] = []
    for second in (1, 20, 40, 99, 103):
        watched.after(second)
        document: dict[str, Any] = {}
        unavailable: dict[str, str] = {}
        watched.host.read(document, unavailable, slow=False)
        assert unavailable == {}
        seen.append(document["host"])
    for before, after in itertools.pairwise(seen):
        for group, key in (
            ("cpu", "user"),
            ("cpu", "idle"),
            ("io", "read"),
            ("io", "write"),
            ("net", "rx"),
            ("net", "tx"),
        ):
            assert after[group][key] > before[group][key]
    assert seen[0]["memory"]["available"] > seen[2]["memory"]["available"]
    assert seen[0]["hostname"] == "practice-droplet"


def serves(watched: Watched) -> bool:
    return watched.world.listening


def hit_rates(watched: Watched, first: float, last: float) -> dict[str, float]:
    found = []
    for second in (first, last):
        watched.after(second)
        found.append(read_statistics(watched.json("/v2/models/stats")).models)
    rates: dict[str, float] = {}
    for (name, _), before in found[0].items():
        after = found[1][name, "1"]
        rates[name] = 1 - (after["executions"] - before["executions"]) / (after["success"] - before["success"])
    return rates


def test_within_one_loop_there_is_calm_peak_and_every_trouble(watched: Watched) -> None:
    calm = hit_rates(watched, 5, 25)
    cool = watched.gpu()["temperature"]
    peak = hit_rates(watched, 40, 57)
    assert calm["sim_whisper"] < 0.35 < 0.6 < peak["sim_whisper"]
    assert watched.gpu()["temperature"] > cool + 5
    assert peak["sim_reranker"] == 0

    watched.after(75)
    failures = watched.metrics.read(watched.world.answer("GET", "/metrics")[1].encode())
    assert failures.models["sim_reranker", "1"].fields["failures"]["BACKEND"] > 10
    watched.after(82)
    hot = watched.gpu()
    assert "HwThermalSlowdown" in hot["throttle"]
    assert hot["sm_clock_mhz"] < 1300
    pending = watched.metrics.read(watched.world.answer("GET", "/metrics")[1].encode())
    assert pending.models["sim_whisper", "1"].fields["pending"] > 10

    watched.after(91.8)
    before = read_statistics(watched.json("/v2/models/stats")).models["sim_resnet50", "1"]
    watched.after(92.3)
    after = read_statistics(watched.json("/v2/models/stats")).models["sim_resnet50", "1"]
    assert after["success"] < before["success"], "a reload resets the statistics"
    page = watched.metrics.read(watched.world.answer("GET", "/metrics")[1].encode())
    assert page.models["sim_resnet50", "1"].fields["metrics_success"] >= before["success"], "and not the metrics"

    watched.after(99)
    assert not serves(watched)
    assert "auto-restart" in (watched.root.folder / "run/droplet-console-demo/systemctl").read_text()
    assert not (watched.root.folder / "proc/1601").exists()
    watched.after(107)
    assert serves(watched)
    assert watched.world.answer("GET", "/v2/health/ready")[0] == 400
    assert watched.gpu()["holders"][0]["orphan"], "memory that nobody living holds"
    watched.after(119)
    assert watched.world.answer("GET", "/v2/health/ready")[0] == 200


def test_the_loop_goes_on_as_it_began(watched: Watched) -> None:
    watched.after(timeline.LOOP * 3 + 40)
    assert watched.world.answer("GET", "/v2/health/ready")[0] == 200
    assert len(read_statistics(watched.json("/v2/models/stats")).models) == 5
    assert "throttle" not in watched.gpu()


def test_a_request_of_ones_own_is_counted(watched: Watched) -> None:
    watched.after(10)
    before = read_statistics(watched.json("/v2/models/stats")).models["sim_llm", "1"]["success"]
    for _ in range(10):
        assert watched.world.infer("sim_llm") is not None
    watched.after(27)
    after = read_statistics(watched.json("/v2/models/stats")).models["sim_llm", "1"]["success"]
    assert after >= before + 10
    assert watched.world.infer("nothing") is None


def test_without_a_stand_in_another_root_has_no_gpu_of_the_demos(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/droplet-console").mkdir(parents=True)
    (tmp_path / "usr/lib/droplet-console/nvml_library.py").write_text("raise RuntimeError('no')")
    look = GpuReader(Call({}, Lines(), tmp_path, []), gpm=True).read(0.0, True, {})
    assert look.gpus is None
    assert "cannot stand in for NVML: no" in look.unavailable["/gpus"]
