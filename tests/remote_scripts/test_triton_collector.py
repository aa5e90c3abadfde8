from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from remote_scripts.triton.collector import PATIENCE, TritonCollector
from remote_scripts.triton.configs import quote
from tests.remote_scripts.fake_droplet import UNIT_CGROUP, FakeDroplet
from tests.remote_scripts.replayed_triton import DATA, ReplayedTriton
from tests.remote_scripts.scripted_server import respond

AT = "/servers/triton"


class Watched:
    """A droplet with one server, and what is told of it tick by tick."""

    def __init__(self, droplet: FakeDroplet) -> None:
        self.droplet = droplet
        self.triton = ReplayedTriton("batched")
        self.collector = TritonCollector(droplet.call())
        self.ticks = 0
        self.unavailable: dict[str, str] = {}
        # What a server would be answered by, were systemd asked at the wrong moment.
        droplet.tool("systemctl", "exit 1")

    def start(self, *flags: str) -> None:
        port = self.triton.port
        self.droplet.triton(10, f"--http-port={port}", f"--metrics-port={port}", *flags, cgroup=self.cgroup)

    cgroup = UNIT_CGROUP.format("triton.service")

    def tick(self, *, slow: bool = False) -> dict[str, Any]:
        document: dict[str, Any] = {}
        self.unavailable = {}
        self.triton.forget()
        slow = slow or self.ticks == 0
        self.collector.look(tick=self.ticks, slow=slow)
        self.collector.read(document, self.unavailable, tick=self.ticks, slow=slow)
        self.ticks += 1
        assert json.loads(json.dumps(document, allow_nan=False)) == document
        branch: dict[str, Any] = document["servers"]["triton"]
        return branch


@pytest.fixture
def watched(droplet: FakeDroplet) -> Iterator[Watched]:
    watched = Watched(droplet)
    watched.start()
    yield watched
    watched.triton.close()


def test_the_first_tick_tells_all_that_needs_no_second(watched: Watched) -> None:
    branch = watched.tick()
    assert (branch["state"], branch["version"], branch["unit"]) == ("ready", "2.51.0", "triton.service")
    raw = {entry["name"]: entry for entry in json.loads((DATA / "batched/stats.json").read_bytes())["model_stats"]}
    echo = branch["models"]["echo"]["1"]
    assert echo["success"] == echo["metrics_success"] == raw["echo"]["inference_stats"]["success"]["count"]
    assert echo["executions"] == echo["metrics_executions"] == raw["echo"]["execution_count"]
    assert (echo["state"], echo["backend"], echo["max_batch_size"]) == ("READY", "python", 8)
    assert echo["scheduling"] == "dynamic_batching"
    assert echo["failures"] == {"REJECTED": 0, "CANCELED": 0, "BACKEND": 0, "OTHER": 0}
    assert branch["models"]["vllm_model"]["1"]["in_flight_batching"] is True
    assert branch["models"]["stream"]["1"]["in_flight_batching"] is False
    assert branch["models"]["broken"]["-"] == {"state": "UNKNOWN"}
    assert watched.unavailable[f"{AT}/models/broken/-"]
    assert "summary_latencies" in watched.unavailable[f"{AT}/models/echo/1/p95_us"]
    assert watched.unavailable[f"{AT}/models/stream/1/responses"]
    assert f"{AT}/models/echo/1/responses" not in watched.unavailable


def test_statistics_and_metrics_are_read_one_right_after_the_other(watched: Watched) -> None:
    watched.tick()
    paths = [path for path in watched.triton.paths if path in ("/v2/models/stats", "/metrics")]
    assert paths == ["/v2/models/stats", "/metrics"]
    assert not any(
        path.endswith("/config") for path in watched.triton.paths[: watched.triton.paths.index("/metrics")]
    )


def test_configs_are_read_once_and_again_after_a_reload(watched: Watched) -> None:
    watched.tick()
    assert "/v2/models/echo/versions/1/config" in watched.triton.paths
    watched.tick()
    assert sorted(watched.triton.paths) == [
        "/metrics",
        "/v2/health/ready",
        "/v2/models/stats",
        "/v2/repository/index",
    ]
    watched.triton.folder = "reloaded"
    watched.tick()
    assert "/v2/models/echo/versions/1/config" in watched.triton.paths
    assert "/v2/models/stream/versions/1/config" not in watched.triton.paths
    watched.tick()
    assert len(watched.triton.paths) == 4


def test_configs_are_looked_at_again_in_turn(watched: Watched) -> None:
    watched.tick()
    asked: set[str] = set()
    for _ in range(4):
        watched.tick(slow=True)
        asked.update(path for path in watched.triton.paths if path.endswith("/config"))
    assert len(asked) == 10


def test_a_reload_shows_as_statistics_that_disagree_with_the_metrics(watched: Watched) -> None:
    before = watched.tick()["models"]["echo"]["1"]
    watched.triton.folder = "reloaded"
    after = watched.tick()["models"]["echo"]["1"]
    assert after["success"] < before["success"] <= after["metrics_success"]


def test_an_unloaded_model_has_a_state_and_no_figures(watched: Watched) -> None:
    watched.tick()
    watched.triton.folder = "unloaded"
    branch = watched.tick()
    flaky = branch["models"]["flaky"]["1"]
    assert (flaky["state"], flaky["reason"]) == ("UNAVAILABLE", "unloaded")
    assert flaky.keys() == {"state", "reason"}
    assert "ready versions only" in watched.unavailable[f"{AT}/models/flaky/1"]
    assert branch["models"]["broken"]["1"]["reason"].startswith("Internal: FileNotFoundError")


def test_a_model_that_failed_to_load_makes_the_server_not_ready(watched: Watched) -> None:
    watched.triton.folder = "broken"
    branch = watched.tick()
    assert (branch["state"], branch["reason"]) == ("not ready", "broken is UNAVAILABLE")
    assert branch["models"]["echo"]["1"]["success"] > 0


def test_summaries_give_a_p95_and_say_where_there_is_none(watched: Watched) -> None:
    watched.triton.folder = "summaries"
    branch = watched.tick()
    assert branch["models"]["echo"]["1"]["p95_us"] > 0
    assert "p95_us" not in branch["models"].get("curve", {}).get("1", {})


def test_a_restricted_server(watched: Watched) -> None:
    watched.triton.folder = "restricted"
    branch = watched.tick()
    assert branch["state"] == "restricted"
    assert "expecting header 'lab-key'" in branch["reason"]
    assert "403" in watched.unavailable[f"{AT}/models"]
    assert "403" in watched.unavailable[f"{AT}/version"]
    # The metrics are not covered by the restriction: what they tell is told.
    assert branch["models"]["echo"]["1"]["metrics_success"] >= 0
    assert f"{AT}/models/echo/1" not in watched.unavailable


def test_restricted_statistics_leave_the_state_alone(watched: Watched) -> None:
    watched.triton.broken["/v2/models/stats"] = respond(b'{"error":"This API is restricted"}', "403 Forbidden")
    branch = watched.tick()
    assert branch["state"] == "ready"
    assert "its statistics (403: This API is restricted)" in watched.unavailable[f"{AT}/models"]
    assert branch["models"]["echo"]["1"]["metrics_success"] > 0


def test_metrics_that_are_off(droplet: FakeDroplet) -> None:
    watched = Watched(droplet)
    watched.start("--allow-metrics=false")
    branch = watched.tick()
    assert branch["state"] == "ready"
    assert "metrics" not in branch
    assert branch["models"]["echo"]["1"]["success"] > 0
    for place in ("metrics", "models/echo/1/pending", "models/echo/1/failures", "models/echo/1/p95_us"):
        assert "--allow-metrics=false" in watched.unavailable[f"{AT}/{place}"]


def test_http_that_is_off(droplet: FakeDroplet) -> None:
    watched = Watched(droplet)
    watched.start("--allow-http=false")
    branch = watched.tick()
    assert branch["state"] == "unreachable"
    assert "--allow-http=false" in branch["reason"]
    assert branch["models"]["echo"]["1"]["metrics_success"] > 0


def test_one_that_starts_one_that_leaves(watched: Watched) -> None:
    watched.triton.close()
    assert watched.tick()["state"] == "starting"
    watched.triton = ReplayedTriton("batched")
    watched.start()
    watched.droplet.end(10)
    watched.droplet.triton(
        11, f"--http-port={watched.triton.port}", f"--metrics-port={watched.triton.port}", cgroup=watched.cgroup
    )
    assert watched.tick()["state"] == "ready"
    watched.triton.close()
    branch = watched.tick()
    assert branch["state"] == "not ready"
    assert "shutting down" in branch["reason"]
    assert watched.unavailable[f"{AT}/models"]


def test_one_that_hangs_takes_little_of_a_tick(watched: Watched) -> None:
    watched.tick()
    watched.triton.broken["/v2/health/ready"] = None
    branch = watched.tick()
    assert branch["state"] == "unreachable"
    assert "does not answer in time" in branch["reason"]
    began = time.monotonic()
    watched.tick()
    assert time.monotonic() - began < PATIENCE
    watched.triton.broken.clear()
    assert watched.tick()["state"] == "ready"


def test_statistics_that_hang_leave_the_state(watched: Watched) -> None:
    watched.triton.broken["/v2/models/stats"] = None
    branch = watched.tick()
    assert (branch["state"], branch["version"]) == ("ready", "2.51.0")
    assert "its statistics" in watched.unavailable[f"{AT}/models"]
    began = time.monotonic()
    watched.tick()
    assert time.monotonic() - began < PATIENCE


def test_metrics_that_hang_leave_the_statistics(watched: Watched) -> None:
    watched.triton.broken["/metrics"] = None
    branch = watched.tick()
    assert branch["state"] == "ready"
    assert branch["models"]["echo"]["1"]["success"] > 0
    assert "metrics_success" not in branch["models"]["echo"]["1"]
    assert "its metrics" in watched.unavailable[f"{AT}/models/echo/1/pending"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"model_stats":[{"name":"echo","version":"1","inference_stats":[]},7]}',
        b"[" * 50_000,
        b'[{"name":["x"]},{"name":"echo","version":1,"state":{}}]',
        json.dumps([{"name": "n" * (1 << 20), "version": "v" * (1 << 20), "state": "s" * (1 << 20)}]).encode(),
        b"\xff\xfe" * 1000,
        b"x" * (9 << 20),
    ],
)
@pytest.mark.parametrize("path", ["/v2", "/v2/repository/index", "/v2/models/stats", "/metrics"])
def test_nonsense_is_a_reason_and_nothing_worse(watched: Watched, path: str, body: bytes) -> None:
    watched.triton.broken[path] = respond(body)
    branch = watched.tick()
    assert branch["state"] in ("ready", "unreachable")
    assert len(json.dumps(branch)) < 4 << 20
    assert all(len(reason) <= 512 for reason in watched.unavailable.values())


def test_answers_without_sense_are_told_by_what_was_asked_for(watched: Watched) -> None:
    for path in ("/v2", "/v2/repository/index", "/v2/models/stats"):
        watched.triton.broken[path] = respond(b"\x1f\x8b packed", "200 OK", "Content-Encoding: gzip")
    assert watched.tick()["state"] == "ready"
    said = "Triton was asked for its {}, and its answer cannot be read: it is no JSON"
    assert watched.unavailable[f"{AT}/version"] == said.format("version")
    assert watched.unavailable[f"{AT}/models"] == "; ".join(
        said.format(what) for what in ("repository index", "statistics")
    )
    watched.triton.broken["/metrics"] = respond(b"x" * (9 << 20))
    watched.tick()
    assert watched.unavailable[f"{AT}/models"].startswith("Triton is ready: Triton was asked for its")
    assert "larger than 8 MiB" in watched.unavailable[f"{AT}/models"]


def test_names_with_anything_in_them(watched: Watched) -> None:
    name = "[red]x/y~\x1b[31m\0\ud800\"'"
    index = json.dumps([{"name": name, "version": "1", "state": "READY"}]).encode()
    stats = json.dumps({"model_stats": [{"name": name, "version": "1", "execution_count": 3}]}).encode()
    watched.triton.broken["/v2/repository/index"] = respond(index)
    watched.triton.broken["/v2/models/stats"] = respond(stats)
    branch = watched.tick()
    assert branch["models"][name]["1"]["executions"] == 3
    place = name.replace("~", "~0").replace("/", "~1")
    assert f"{AT}/models/{place}/1/backend" in watched.unavailable
    assert all(path.isascii() and path.isprintable() for path in watched.triton.paths)


def test_metrics_that_stand_still_are_not_believed(watched: Watched) -> None:
    """``--metrics-config=counter_latencies=false`` leaves every counter at 0."""
    watched.triton.folder = "failures"
    page = (DATA / "failures/metrics.txt").read_bytes()
    frozen = re.sub(rb"(?m)^(nv_inference_(?:request_success|request_failure|exec_count)\{.*) .*$", rb"\1 0", page)
    watched.triton.broken["/metrics"] = respond(frozen)
    models = watched.tick()["models"]
    flaky = models["flaky"]["1"]
    assert (flaky["success"], flaky["fail"]) == (41, 21)
    assert not flaky.keys() & {"failures", "metrics_success", "metrics_executions"}
    assert "counter_latencies=false" in watched.unavailable[f"{AT}/models/flaky/1/failures"]
    assert models["stream"]["1"]["failures"]["BACKEND"] == 0, "nothing failed there"
    del watched.triton.broken["/metrics"]
    assert watched.tick()["models"]["flaky"]["1"]["failures"]["BACKEND"] == 21


def test_a_folder_whose_name_is_no_utf8_hides_no_other(watched: Watched) -> None:
    index = b'[{"name":"echo","version":"1","state":"READY"},{"name":"bad\xff\xfe"},'
    index += b'{"name":"broken","version":"1","state":"UNAVAILABLE","reason":"said \x9b2J"}]'
    watched.triton.broken["/v2/repository/index"] = respond(index)
    branch = watched.tick()
    assert branch["models"]["bad\ufffd\ufffd"]["-"]["state"] == "UNKNOWN"
    assert branch["models"]["broken"]["1"] == {"state": "UNAVAILABLE", "reason": "said \ufffd2J"}


def test_more_models_and_batch_sizes_than_a_document_may_hold(watched: Watched) -> None:
    batches = [{"batch_size": size, "compute_infer": {"count": 1, "ns": 1}} for size in range(1, 41)]
    entries = [{"name": f"m{number}", "version": "1", "batch_stats": batches} for number in range(2100)]
    watched.triton.broken["/v2/models/stats"] = respond(json.dumps({"model_stats": entries}).encode())
    watched.triton.broken["/v2/repository/index"] = respond(b"[]")
    branch = watched.tick()
    assert len(branch["models"]) == 2000
    held = sum(len(versions["1"].get("batches", {})) for versions in branch["models"].values())
    assert held == 20_000
    reason = watched.unavailable[f"{AT}/models"]
    assert "100 more models are left out" in reason
    assert "60000 batch sizes are left out" in reason


def test_series_that_name_no_version_go_to_their_model(watched: Watched) -> None:
    page = b'vllm:num_requests_running{model_name="echo"} 3\nvllm:x{model_name="meta/llama"} 4\n'
    watched.triton.broken["/metrics"] = respond(page)
    branch = watched.tick()
    echo = branch["models"]["echo"]["1"]
    assert echo["series"] == {'vllm:num_requests_running{model_name="echo"}': 3}
    assert echo["in_flight_batching"] is True
    assert branch["series"] == {'vllm:x{model_name="meta/llama"}': 4}


SHOW = """\
Id=triton.service
LoadState=loaded
ActiveState={active}
SubState={sub}
Result={result}
NRestarts={restarts}
ExecMainCode=1
ExecMainStatus={status}
MainPID=0
"""


def show(droplet: FakeDroplet, **values: object) -> None:
    text = SHOW.format(**{"result": "success", "restarts": 0, "status": 0, **values})
    droplet.tool("systemctl", f"cat <<'END'\n{text}END")


def test_a_unit_that_crashed_is_told_with_its_exit_status(watched: Watched) -> None:
    show(watched.droplet, active="active", sub="running", restarts=3)
    watched.tick()
    assert watched.tick()["restarts"] == 3
    show(watched.droplet, active="failed", sub="failed", result="exit-code", status=1, restarts=3)
    watched.droplet.end(10)
    branch = watched.tick()
    assert (branch["state"], branch["reason"]) == ("dead", "its unit failed: exit status 1")
    assert "pid" not in branch
    assert watched.unavailable[f"{AT}/models"] == "Triton is dead"


def test_a_unit_that_waits_for_its_restart(watched: Watched) -> None:
    watched.tick()
    show(watched.droplet, active="activating", sub="auto-restart", result="signal", status=9, restarts=1)
    watched.droplet.end(10)
    branch = watched.tick()
    assert branch["state"] == "restarting"
    assert branch["restarts"] == 1


def test_a_unit_that_was_stopped(watched: Watched) -> None:
    watched.tick()
    show(watched.droplet, active="inactive", sub="dead")
    watched.droplet.end(10)
    assert watched.tick()["state"] == "stopped"


def test_a_unit_that_is_down_at_the_first_tick(droplet: FakeDroplet) -> None:
    droplet.unit("triton.service", "ExecStart=tritonserver")
    show(droplet, active="failed", sub="failed", result="exit-code", status=1)
    watched = Watched.__new__(Watched)
    watched.__dict__.update(
        droplet=droplet, triton=ReplayedTriton("idle"), collector=TritonCollector(droplet.call()), ticks=0
    )
    assert watched.tick()["state"] == "dead"


def test_no_systemd_to_ask(watched: Watched) -> None:
    watched.tick()
    watched.droplet.end(10)
    branch = watched.tick()
    assert branch["state"] == "unreachable"
    assert "systemd" in branch["reason"]


def test_a_process_that_was_started_by_hand_and_is_gone(droplet: FakeDroplet) -> None:
    watched = Watched(droplet)
    watched.droplet.triton(10, f"--http-port={watched.triton.port}")
    document: dict[str, Any] = {}
    watched.collector.look(tick=0, slow=True)
    droplet.end(10)
    watched.collector.look(tick=1, slow=False)
    watched.collector.read(document, {}, tick=1, slow=False)
    (branch,) = document["servers"].values()
    assert branch["state"] == "dead"


def test_a_name_stands_in_a_path_as_it_is_but_for_what_would_end_it() -> None:
    assert quote("[red]per%41'{ü}\u202e") == "[red]per%41'{ü}\u202e"
    assert quote("a b/?\r\n\0\x7f\ud800") == "a%20b%2F%3F%0D%0A%00%7F%ED%A0%80"
