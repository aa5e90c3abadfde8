"""Makes the captured answers in tests/data/triton anew, from the real server on a lab droplet.

    python -m tests.lab.triton.capture [working] [responses] [series] [summaries] [restricted] [polling] [starting]

Unit tests parse these; nobody writes them by hand, and tests that name a captured figure follow. One folder a
moment, one file an answer: JSON and text as they came, and ``{"status", "body"}`` for what was not a 200.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.machine import Machine
from tests.lab.triton import repository
from tests.lab.triton.api import Api, infer_body
from tests.lab.triton.load import Result, closed_loop, infer_target, stream_target
from tests.lab.triton.options import Options
from tests.lab.triton.unit import TritonUnit, install

DATA = Path(__file__).parents[2] / "data/triton"
TRITON_MODELS = ("cached", "curve", "echo", "flaky", "pipeline", "sequence", "stream")
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


def send(api: Api, model: str, count: int, connections: int, values: Sequence[int] = (0,)) -> Result:
    """A closed loop of inference requests."""
    return closed_loop(infer_target(api.address, api.http, model, values), count, connections)


def server(machine: Machine, name: str, options: Options, models: Sequence[str]) -> TritonUnit:
    """A unit with a model repository of its own."""
    return install(machine, options, f"triton-{name}", models)


def working(machine: Machine) -> None:
    """A server with everything on: idle, after loads, after failures, streaming, reloaded, unloaded."""
    started = (*TRITON_MODELS, *IN_FLIGHT, "impatient")
    options = Options(repository="/models", load=started, cache_bytes=1 << 20)
    unit = server(machine, "working", options, [*TRITON_MODELS, *IN_FLIGHT, "broken"])
    rejecting = "dynamic_batching { default_queue_policy { default_timeout_microseconds: 30000 } }"
    repository.add_model(unit.models, "curve", "impatient", {"dynamic_batching { }": rejecting, '"20"': '"50"'})
    unit.start()
    api = unit.api
    snapshot("idle", api)
    save("idle", "server", answer(api, "GET", "/v2"))
    for model in started:
        save("config", model, api.config(model))
    for model, count, connections in (("echo", 2400, 12), ("curve", 200, 16), ("pipeline", 40, 4)):
        send(api, model, count, connections)
    snapshot("batched", api)
    for value, count in ((0, 30), (1, 20), (2, 10)):
        send(api, "flaky", count, 4, (value,))
    send(api, "impatient", 100, 50)
    save("failures", "raised", answer(api, "POST", "/v2/models/flaky/infer", infer_body(1)))
    save("failures", "error_response", answer(api, "POST", "/v2/models/flaky/infer", infer_body(2)))
    snapshot("failures", api)
    send(api, "cached", 30, 1, (1, 2, 3))
    snapshot("cache", api)
    streams(api)
    changes(unit)
    save("log", "running", unit.journal())


def streams(api: Api) -> None:
    """Decoupled and in-flight batching models, during and after a load of 12 at a time."""
    inputs: dict[str, Mapping[str, object]] = {"stream": STREAM, "tensorrt_llm": TENSORRT_LLM, "vllm_model": VLLM}
    targets = [stream_target(api.address, api.http, model, body) for model, body in inputs.items()]
    loads = [threading.Thread(target=closed_loop, args=(target, 24, 12)) for target in targets]
    for load in loads:
        load.start()
    time.sleep(0.7)
    snapshot("streaming", api)
    for load in loads:
        load.join()
    snapshot("streamed", api)
    refused = {"inputs": [{"name": "COUNT", "datatype": "INT32", "shape": [1], "data": [1]}]}
    save("streamed", "infer_refused", answer(api, "POST", "/v2/models/stream/infer", refused))


def changes(unit: TritonUnit) -> None:
    """A load that fails, a reload, an unload: what stays and what starts anew."""
    api = unit.api
    save("broken", "load", answer(api, "POST", "/v2/repository/models/broken/load", {}))
    snapshot("broken", api)
    save("broken", "ready", answer(api, "GET", "/v2/health/ready"))
    unit.touch("echo")
    api.load("echo")
    send(api, "echo", 80, 8)
    snapshot("reloaded", api)
    api.unload("flaky")
    api.wait_state("flaky", "UNAVAILABLE")
    time.sleep(2)
    snapshot("unloaded", api)
    save("unloaded", "stats_of_it", answer(api, "GET", "/v2/models/flaky/stats"))


def responses(machine: Machine) -> None:
    """A decoupled model whose backend reports response statistics, idle and after 24 requests."""
    unit = server(machine, "responses", Options(repository="/models-r", load=("responses",)), ["responses"])
    unit.start()
    save("responses", "config", unit.api.config("responses"))
    save("responses", "stats_before", answer(unit.api, "GET", "/v2/models/stats"))
    closed_loop(stream_target(unit.api.address, unit.api.http, "responses", STREAM), 24, 4)
    snapshot("responses", unit.api)


def series(machine: Machine) -> None:
    """A model with metrics of its own, a hostile label among them."""
    unit = server(machine, "series", Options(repository="/models-m", load=("series",)), ["series"])
    unit.start()
    send(unit.api, "series", 5, 1)
    snapshot("series", unit.api)


def summaries(machine: Machine) -> None:
    """Latency summaries on: before the first request, and after 200."""
    options = Options(repository="/models-s", load=("echo", "cached"), summaries=True, cache_bytes=1 << 20)
    unit = server(machine, "summaries", options, options.load)
    unit.start()
    save("summaries", "metrics_before", unit.api.metrics())
    send(unit.api, "echo", 200, 8)
    snapshot("summaries", unit.api)


def restricted(machine: Machine) -> None:
    """Every API that can be closed is closed: the answers without the key."""
    closed = ("health", "metadata", "statistics", "model-repository", "model-config", "inference", "logging")
    unit = server(machine, "closed", Options(repository="/models-c", load=("echo",), restricted=closed), ["echo"])
    unit.start(wait=False)
    unit.api.wait_listening()
    snapshot("restricted", unit.api)
    for name, path in (("ready", "/v2/health/ready"), ("server", "/v2"), ("config", "/v2/models/echo/config")):
        save("restricted", name, answer(unit.api, "GET", path))


def polling(machine: Machine) -> None:
    """A server that was started without metrics, in poll mode, where loading is refused."""
    unit = server(machine, "poll", Options(repository="/models-p", control="poll", metrics=None), ["echo"])
    unit.start()
    snapshot("poll", unit.api)
    save("poll", "load_refused", answer(unit.api, "POST", "/v2/repository/models/echo/load", {}))


def starting(machine: Machine) -> None:
    """While startup models load nothing listens; then a model fails and takes the server with it."""
    unit = server(machine, "slow", Options(repository="/models-l", load=("slow_start",)), ["slow_start"])
    unit.start(wait=False)
    time.sleep(2)
    save("starting", "ports", {"http": unit.api.listens(), "metrics": unit.api.listens(metrics=True)})
    unit.api.wait_ready()
    unit.remove()
    unit = server(machine, "failed", Options(repository="/models-f", load=("broken", "echo")), ["broken"])
    repository.add_model(unit.models, "echo", edits={"max_batch_size: 8": "max_batch_size: eight"})
    unit.start(wait=False)
    time.sleep(4)
    unit.stop()
    save("starting", "exit_status", {"exit_status": unit.exit_status()})
    save("log", "failed_start", unit.journal())
    unit = unit.configure(
        Options(repository="/models-f", load=("broken", "echo"), exit_on_error=False, strict_readiness=False)
    )
    unit.start()
    snapshot("failed_start", unit.api)


PARTS = (working, responses, series, summaries, restricted, polling, starting)


def main(names: Sequence[str]) -> None:
    """The named parts, or all of them, each on a droplet of its own."""
    for part in (part for part in PARTS if not names or part.__name__ in names):
        with Machine("bookworm") as machine:
            part(machine)
        sys.stdout.write(f"{part.__name__}: done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
