"""Makes the captured answers in tests/data/triton anew, from the real server.

    python -m tests.lab.triton.capture [working] [responses] [summaries] [restricted] [without_metrics] [starting]

Unit tests parse these; nobody writes them by hand. One folder a moment, one file an answer: JSON and text as they
came, and ``{"status", "body"}`` for what was not a 200.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lab.triton import host, repository
from tests.lab.triton.api import Api
from tests.lab.triton.load import closed_loop, infer_target, stream_target
from tests.lab.triton.options import Options

DATA = Path(__file__).parents[2] / "data/triton"
SCRATCH = Path(tempfile.gettempdir()) / "droplet-console-capture"
EVERYTHING = ("cached", "curve", "echo", "flaky", "pipeline", "sequence", "stream")
IN_FLIGHT = ("tensorrt_llm", "vllm_model")
STREAM = {"COUNT": 5, "FIRST_MS": 30, "DELAY_MS": 10}
TENSORRT_LLM = {"input_ids": [1, 2, 3], "input_lengths": 3, "request_output_len": 20, "streaming": True}
VLLM = {"text_input": "the quick brown fox", "sampling_parameters": '{"max_tokens": 20}'}


def save(moment: str, name: str, content: object) -> None:
    """Write one answer; text as it is, anything else as JSON."""
    folder = DATA / moment
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        (folder / f"{name}.txt").write_text(content)
    else:
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def answer(api: Api, method: str, path: str, body: object = None) -> object:
    """The JSON of a 200, or status and body of anything else."""
    status, text = api.request(method, path, body)
    return json.loads(text) if status == 200 and text else {"status": status, "body": text}


def snapshot(moment: str, api: Api) -> None:
    """What a tick reads, at one moment."""
    save(moment, "stats", answer(api, "GET", "/v2/models/stats"))
    save(moment, "index", answer(api, "POST", "/v2/repository/index", {}))
    if api.metrics_port is not None:
        save(moment, "metrics", api.metrics())


def working(folder: Path) -> None:
    """A server with everything on: idle, after loads, after failures, streaming, reloaded, unloaded."""
    models = repository.add_models(folder / "models", [*EVERYTHING, *IN_FLIGHT, "broken"])
    rejecting = "dynamic_batching { default_queue_policy { default_timeout_microseconds: 30000 } }"
    repository.add_model(models, "curve", "impatient", {"dynamic_batching { }": rejecting, '"20"': '"50"'})
    options = Options(
        repository=str(models), load=(*EVERYTHING, *IN_FLIGHT, "impatient"), cache_bytes=1 << 20, exit_timeout_s=10
    )
    with host.running(options, folder / "log") as server:
        api = server.api
        snapshot("idle", api)
        save("idle", "server", answer(api, "GET", "/v2"))
        for model in options.load:
            save("config", model, answer(api, "GET", f"/v2/models/{model}/config"))
        port = api.http
        for model, count, connections in (("echo", 2400, 12), ("curve", 200, 16), ("pipeline", 40, 4)):
            closed_loop(infer_target("127.0.0.1", port, model), count, connections)
        snapshot("batched", api)
        for value, count in ((0, 30), (1, 20), (2, 10)):
            closed_loop(infer_target("127.0.0.1", port, "flaky", (value,)), count, 4)
        closed_loop(infer_target("127.0.0.1", port, "impatient"), 100, 50)
        save("failures", "raised", answer(api, "POST", "/v2/models/flaky/infer", json_body(1)))
        save("failures", "error_response", answer(api, "POST", "/v2/models/flaky/infer", json_body(2)))
        snapshot("failures", api)
        closed_loop(infer_target("127.0.0.1", port, "cached", (1, 2, 3)), 30, 1)
        snapshot("cache", api)
        streams(api, port)
        changes(api, port)
    save("log", "running", (folder / "log").read_text())


def streams(api: Api, port: int) -> None:
    """Decoupled and in-flight batching models, during and after a load of 12 at a time."""
    loads = [
        threading.Thread(target=closed_loop, args=(stream_target("127.0.0.1", port, model, inputs), 24, 12))
        for model, inputs in (
            ("stream", STREAM),
            ("tensorrt_llm", TENSORRT_LLM),
            ("vllm_model", VLLM),
        )
    ]
    for load in loads:
        load.start()
    time.sleep(0.7)
    snapshot("streaming", api)
    for load in loads:
        load.join()
    snapshot("streamed", api)
    refused = {"inputs": [{"name": "COUNT", "datatype": "INT32", "shape": [1], "data": [1]}]}
    save("streamed", "infer_refused", answer(api, "POST", "/v2/models/stream/infer", refused))


def responses(folder: Path) -> None:
    """A decoupled model whose backend reports response statistics, idle and after 24 requests."""
    models = repository.add_models(folder / "models", ["responses"])
    with host.running(Options(repository=str(models), load=("responses",)), folder / "log") as server:
        save("responses", "config", answer(server.api, "GET", "/v2/models/responses/config"))
        save("responses", "stats_before", answer(server.api, "GET", "/v2/models/stats"))
        closed_loop(stream_target("127.0.0.1", server.api.http, "responses", STREAM), 24, 4)
        snapshot("responses", server.api)


def changes(api: Api, port: int) -> None:
    """A load that fails, a reload, an unload: what stays and what starts anew."""
    save("broken", "load", answer(api, "POST", "/v2/repository/models/broken/load", {}))
    snapshot("broken", api)
    save("broken", "ready", answer(api, "GET", "/v2/health/ready"))
    (SCRATCH / "models/echo/1/model.py").touch()
    api.load("echo")
    closed_loop(infer_target("127.0.0.1", port, "echo"), 80, 8)
    snapshot("reloaded", api)
    api.unload("flaky")
    api.wait_state("flaky", "UNAVAILABLE")
    time.sleep(2)
    snapshot("unloaded", api)
    save("unloaded", "stats_of_it", answer(api, "GET", "/v2/models/flaky/stats"))


def json_body(value: int) -> object:
    """The body that makes flaky do as ``value`` says."""
    return json.loads(infer_target("", 0, "flaky", (value,)).bodies[0])


def summaries(folder: Path) -> None:
    """Latency summaries on: before the first request, and after 200."""
    models = repository.add_models(folder / "models", ["echo", "cached"])
    options = Options(repository=str(models), load=("echo", "cached"), summaries=True, cache_bytes=1 << 20)
    with host.running(options, folder / "log") as server:
        save("summaries", "metrics_before", server.api.metrics())
        closed_loop(infer_target("127.0.0.1", server.api.http, "echo"), 200, 8)
        snapshot("summaries", server.api)


def restricted(folder: Path) -> None:
    """Every API that can be closed is closed: the answers without the key."""
    models = repository.add_models(folder / "models", ["echo"])
    closed = ("health", "metadata", "statistics", "model-repository", "model-config", "inference", "logging")
    options = Options(repository=str(models), load=("echo",), restricted=closed)
    with host.running(options, folder / "log", wait=False) as server:
        deadline = time.monotonic() + 20
        while not listens(server.api.metrics_port) and time.monotonic() < deadline:
            time.sleep(0.1)
        snapshot("restricted", server.api)
        for name, path in (("ready", "/v2/health/ready"), ("server", "/v2"), ("config", "/v2/models/echo/config")):
            save("restricted", name, answer(server.api, "GET", path))


def without_metrics(folder: Path) -> None:
    """A server that was started without metrics, in poll mode, where loading is refused."""
    models = repository.add_models(folder / "models", ["echo"])
    options = Options(repository=str(models), control="poll", metrics=None)
    with host.running(options, folder / "log") as server:
        snapshot("poll", server.api)
        save("poll", "load_refused", answer(server.api, "POST", "/v2/repository/models/echo/load", {}))


def starting(folder: Path) -> None:
    """While startup models load nothing listens; then a model fails and takes the server with it."""
    models = repository.add_models(folder / "models", ["slow_start"])
    options = Options(repository=str(models), load=("slow_start",))
    with host.running(options, folder / "log", wait=False) as server:
        time.sleep(2)
        save("starting", "ports", {"http": listens(server.api.http), "metrics": listens(server.api.metrics_port)})
        server.api.wait_ready()
    models = repository.add_models(folder / "models", ["broken"])
    (models / "echo").mkdir()
    (models / "echo/config.pbtxt").write_text("max_batch_size: eight\n")
    options = Options(repository=str(models), load=("broken", "echo"))
    with host.running(options, folder / "log", wait=False) as server:
        save("starting", "exit_status", {"exit_status": server.process.wait(30)})
    save("log", "failed_start", (folder / "log").read_text())
    options = Options(repository=str(models), load=("broken", "echo"), exit_on_error=False, strict_readiness=False)
    with host.running(options, folder / "log") as server:
        snapshot("failed_start", server.api)


def listens(port: int | None) -> bool:
    """Whether somebody accepts on this port of loopback."""
    try:
        Api("127.0.0.1", port or 0).request("GET", "/")
    except OSError:
        return False
    return True


PARTS = (working, responses, summaries, restricted, without_metrics, starting)


def main(names: Sequence[str]) -> None:
    """The named parts, or all of them; tests that name a captured figure may have to follow."""
    for part in (part for part in PARTS if not names or part.__name__ in names):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        SCRATCH.mkdir()
        part(SCRATCH)
        sys.stdout.write(f"{part.__name__}: done\n")
        sys.stdout.flush()
        shutil.rmtree(SCRATCH)


if __name__ == "__main__":
    main(sys.argv[1:])
