"""Samples that tell a story: five minutes of a droplet that calms, peaks and has trouble; always the same."""

from __future__ import annotations

import dataclasses
import math
import time
from collections import deque
from collections.abc import Iterator

from console.domain.telemetry.sample import Failures, GpuHolder, ModelSample, Sample
from console.remote.local_connection import local_connection
from console.remote.transport import Dialled
from console.services.link import Event, LinkState, Phase
from console.settings.schema import Droplet, Settings
from console.tui import theme
from console.tui.app import ConsoleApp
from console.tui.bridge import Bridge
from console.tui.state import State
from tests.unit.cli.samples import GIB, gpu, model, sample, server

END = float(int(time.time()))
"""The newest sample's moment; screens ask the real clock."""


def echo(second: int) -> ModelSample:
    """A model whose load comes in waves."""
    wave = (1 + math.sin(second / 25)) / 2
    batch = 1 + 7 * wave
    return model(
        rps=200 + 1000 * wave,
        executions_per_s=(200 + 1000 * wave) / batch,
        hit_rate=100 * (1 - 1 / batch),
        mean_batch=batch,
        fill_percent=100 * batch / 8,
        error_percent=2.5 if 120 <= second < 135 else 0.0,
        window_failures=Failures(rejected=3 if 120 <= second < 135 else 0, backend=0, cancelled=0, other=0),
        queue_ms=1 + 10 * wave,
        compute_input_ms=0.2,
        compute_infer_ms=4 + 3 * wave,
        compute_output_ms=0.1,
        request_ms=5.3 + 13 * wave,
        pending=int(30 * wave),
        window_batches={1: int(20 * (1 - wave)), 4: 10, 8: int(60 * wave)},
        max_batch_size=8,
        scheduling="dynamic_batching",
        backend="python",
        inferences=10_000 + second,
    )


def llm(second: int) -> ModelSample:
    """A model whose backend batches by itself."""
    return model(
        name="llama",
        rps=3.0,
        executions_per_s=3.0,
        hit_rate=None,
        mean_batch=None,
        fill_percent=None,
        error_percent=0.0,
        queue_ms=2.0,
        compute_input_ms=0.0,
        compute_infer_ms=2900.0,
        compute_output_ms=0.0,
        request_ms=2902.0,
        running=4.0,
        kv_cache_percent=38.2,
        tokens_per_s=512.0,
        window_batches={},
        average={},
        decoupled=True,
    )


WHY_LLM = "the model is decoupled: it may answer a request many times"


def tick(second: int, droplet: str = "prod", *, end: float | None = None, last: int = 300) -> Sample:
    """The sample of a second of the story; ``last`` stands at ``end``."""
    wave = (1 + math.sin(second / 25)) / 2
    lost = 200 <= second < 230
    holders = (
        GpuHolder(4211, "tritonserver", 12 * GIB, unit="triton.service", server="triton"),
        GpuHolder(4275, "triton_python_b", 30 * GIB, unit="triton.service", server="triton", model="echo"),
    )
    gpus = [
        gpu(0, dram_percent=20 + 70 * wave, dram_gb_s=33.52 * (20 + 70 * wave), utilization_percent=99,
            holders=holders, dram_peak_basis="the device's own clock and bus width", sm_clock_mhz=1980.0),
        gpu(1, dram_percent=15.0, dram_gb_s=502.8, utilization_percent=31, sm_clock_mhz=1980.0),
    ]  # fmt: skip
    if lost:
        gpus[1] = dataclasses.replace(
            gpus[1], state="lost", state_reason="the GPU has fallen off the bus", dram_percent=None, dram_gb_s=None,
            utilization_percent=None, memory_used=None, temperature_c=None, power_w=None,
        )  # fmt: skip
    moment = (END if end is None else end) - last + second
    state = "restarting" if 150 <= second < 156 else "ready"
    models = (echo(second), llm(second)) if state == "ready" else ()
    return sample(
        droplet,
        time=moment,
        seq=second,
        gpus=tuple(gpus),
        servers=(
            server(
                *models, state=state, reason=None if state == "ready" else "the unit starts it again in 2 s",
                started=moment - 3000, restarts=int(second >= 150), pid=100 + int(second >= 150),
            ),
        ),
        unavailable={
            f"/servers/0/models/1/{key}": WHY_LLM for key in ("hit_rate", "mean_batch", "fill_percent", "pending")
        } | {f"/servers/0/models/{place}/p95_ms": "Triton's latency summaries are off" for place in (0, 1)},
    )  # fmt: skip


def live(droplet: str = "prod", since: float = 0.0) -> Event:
    """The line lives."""
    return Event(droplet, link=LinkState(Phase.LIVE, "live", since or END - 300, rtt_s=0.0213))


def story(droplet: str = "prod", seconds: int = 300, *, end: float | None = None) -> Iterator[Event]:
    """All of it, up to the second given."""
    yield live(droplet)
    for second in range(seconds + 1):
        yield Event(droplet, sample=tick(second, droplet, end=end))


class Script:
    """A watch that says what it is given."""

    def __init__(self) -> None:
        self.waiting: deque[Event] = deque()
        self.retried: list[str] = []

    def events(self, timeout: float) -> Event | None:
        """See ``console.tui.bridge.Watching``."""
        return self.waiting.popleft() if self.waiting else None

    def retry(self, droplet: str) -> None:
        """See ``console.tui.bridge.Watching``."""
        self.retried.append(droplet)

    def dial(self, droplet: str, host: str, port: int, *, timeout: float) -> Dialled:
        """This machine's own ports."""
        return local_connection(droplet, host, port, timeout)

    def close(self) -> None:
        """See ``console.tui.bridge.Watching``."""


def stage(
    *names: str, script: Script | None = None, look: theme.Look | None = None, current: str | None = None
) -> ConsoleApp:
    """The real app over a script, its board empty; opened on the first droplet."""
    droplets = tuple(Droplet(name, host=f"{name}.example.com", production=name == "prod") for name in names)
    settings = Settings(droplets=droplets)
    state = State(
        droplets={droplet.name: droplet for droplet in droplets},
        settings=settings,
        current=names[0] if current is None else current,
    )
    return ConsoleApp(state, Bridge(lambda: script or Script()), look or theme.look("dark"))
