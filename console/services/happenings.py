"""What happened on a droplet, told from one sample to the next and from one state of the line to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from console.domain.telemetry.sample import GpuSample, ModelSample, Sample, ServerSample
from console.domain.words.figures import duration
from console.domain.words.models import condition, model_name
from console.services.link import LinkState, Phase

NAMED = 6
"""Models that are named when many change in one tick; the rest are counted."""
TICKS_MISSED = 3
"""So many ticks lost in one go are worth a word."""
_CLOCKS_HELD = ("Hw", "SwThermal")
"""How NVML's names of the clock event reasons begin that a person should know of; power capping is daily life."""


class Severity(str, Enum):
    """How much a happening matters."""

    INFO = "info"
    GOOD = "good"
    """Something came back."""
    WARNING = "warning"
    ERROR = "error"
    """It needs a hand."""


class Kind(str, Enum):
    """What a happening is about."""

    LINE = "line"
    HOST = "host"
    SERVER = "server"
    MODEL = "model"
    GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened.

    Attributes:
        time: Unix seconds by this side's clock.
        droplet: Where.
        kind: What it is about.
        severity: How much it matters.
        words: One sentence fragment, printable.
        subject: The server, model or GPU; empty where the droplet itself is.
    """

    time: float
    droplet: str
    kind: Kind
    severity: Severity
    words: str
    subject: str = ""


def of_line(before: LinkState | None, now: LinkState, droplet: str, lost_at: float | None) -> Happening | None:
    """What a new state of the line means; None where it is no news.

    Args:
        before: The state until now.
        now: The new one.
        droplet: Whose.
        lost_at: Since when the line is not live; None while it is, or before it ever was.
    """
    phase = now.phase
    if before is not None and phase is before.phase:
        return None
    if phase is Phase.LIVE:
        if lost_at is None:
            return Happening(now.since, droplet, Kind.LINE, Severity.INFO, "connected")
        gone = duration(max(now.since - lost_at, 0))
        return Happening(now.since, droplet, Kind.LINE, Severity.GOOD, f"live again after {gone}")
    if phase is Phase.STALLED:
        return Happening(now.since, droplet, Kind.LINE, Severity.WARNING, now.words)
    if phase is Phase.FAILED:
        return Happening(now.since, droplet, Kind.LINE, Severity.ERROR, now.words)
    if phase is Phase.WAITING:
        words = str(now.error) if now.error is not None else now.words
        return Happening(now.since, droplet, Kind.LINE, Severity.ERROR, words)
    return None


def first_seen(sample: Sample) -> list[Happening]:
    """What the first sample tells of the time before: the boot, the servers' starts."""
    told = _Teller(sample)
    skew = sample.clock_skew_s or 0.0
    if sample.host.uptime_s is not None:
        told.add(Kind.HOST, Severity.INFO, "booted", at=sample.time - sample.host.uptime_s)
    for server in sample.servers:
        if server.started is not None:
            words = f"Triton started, after {_times(server.restarts)}" if server.restarts else "Triton started"
            told.add(Kind.SERVER, Severity.INFO, words, server.name, at=server.started - skew)
    return sorted(told.found, key=lambda happening: happening.time)


def between(before: Sample, now: Sample) -> list[Happening]:
    """What changed from one sample of a droplet to the next."""
    told = _Teller(now)
    if before.host.boot_id and now.host.boot_id and before.host.boot_id != now.host.boot_id:
        told.add(Kind.HOST, Severity.WARNING, "rebooted")
    if now.missed >= TICKS_MISSED:
        told.add(Kind.LINE, Severity.INFO, f"{now.missed} ticks missed: the graphs have a gap")
    _gpus(before, now, told)
    _servers(before, now, told)
    return told.found


class _Teller:
    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self.found: list[Happening] = []

    def add(
        self, kind: Kind, severity: Severity, words: str, subject: str = "", *, at: float | None = None
    ) -> None:
        time = self._sample.time if at is None else at
        self.found.append(Happening(time, self._sample.droplet, kind, severity, words, subject))


def _gpus(before: Sample, now: Sample, told: _Teller) -> None:
    old = {gpu.uuid: gpu for gpu in before.gpus}
    for gpu in now.gpus:
        was = old.pop(gpu.uuid, None)
        name = f"GPU {gpu.index}"
        if was is None:
            if before.gpus:
                told.add(Kind.GPU, Severity.GOOD, f"{name} is there", name)
            continue
        if was.state != gpu.state:
            reason = f": {gpu.state_reason}" if gpu.state_reason else ""
            if gpu.state == "ok":
                told.add(Kind.GPU, Severity.GOOD, f"{name} is back", name)
            else:
                told.add(Kind.GPU, Severity.ERROR, f"{name} is {gpu.state}{reason}", name)
        _gpu_health(was, gpu, name, told)
    if now.gpus:
        for gpu in old.values():
            told.add(Kind.GPU, Severity.ERROR, f"GPU {gpu.index} is gone", f"GPU {gpu.index}")
    elif before.gpus:
        reason = now.unavailable.get("/gpus", "the driver names none")
        told.add(Kind.GPU, Severity.ERROR, f"no GPU figures: {reason}")


def _gpu_health(was: GpuSample, gpu: GpuSample, name: str, told: _Teller) -> None:
    held = [reason for reason in gpu.throttle if reason not in was.throttle and reason.startswith(_CLOCKS_HELD)]
    if held:
        told.add(Kind.GPU, Severity.WARNING, f"{name} holds its clocks down: {', '.join(held)}", name)
    elif not gpu.throttle and any(reason.startswith(_CLOCKS_HELD) for reason in was.throttle):
        told.add(Kind.GPU, Severity.GOOD, f"{name} runs at full clocks again", name)
    if gpu.ecc_uncorrected and gpu.ecc_uncorrected > (was.ecc_uncorrected or 0) and was.ecc_uncorrected is not None:
        more = gpu.ecc_uncorrected - was.ecc_uncorrected
        told.add(Kind.GPU, Severity.ERROR, f"{name}: {more} uncorrected ECC errors more", name)
    if gpu.remapped_pending and was.remapped_pending is False:
        told.add(Kind.GPU, Severity.WARNING, f"{name}: a memory row waits to be remapped", name)


def _servers(before: Sample, now: Sample, told: _Teller) -> None:
    old = {server.name: server for server in before.servers}
    for server in now.servers:
        was = old.pop(server.name, None)
        if was is None:
            told.add(Kind.SERVER, Severity.GOOD, f"Triton appeared, {server.state}", server.name)
            continue
        _server(was, server, told)
        _models(was, server, told)
    for server in old.values():
        told.add(Kind.SERVER, Severity.ERROR, "Triton is gone", server.name)


def _server(was: ServerSample, server: ServerSample, told: _Teller) -> None:
    known = server.restarts is not None and was.restarts is not None  # a stream's first ticks may not know it yet
    restarts = (server.restarts or 0) - (was.restarts or 0) if known else 0
    again = was.pid is not None and server.pid is not None and was.pid != server.pid
    if restarts > 0:
        words = f"Triton was restarted, {_times(server.restarts or 0)} by now"
        told.add(Kind.SERVER, Severity.WARNING, words, server.name)
    elif again:
        told.add(Kind.SERVER, Severity.WARNING, "Triton was restarted", server.name)
    if was.state != server.state:
        reason = f": {server.reason}" if server.reason and server.state != "ready" else ""
        severity = _SERVER_SEVERITY.get(server.state, Severity.ERROR)
        told.add(Kind.SERVER, severity, f"Triton is {server.state}{reason}", server.name)
    if was.version and server.version and was.version != server.version:
        words = f"Triton is {server.version} now, was {was.version}"
        told.add(Kind.SERVER, Severity.INFO, words, server.name)


def _times(restarts: int) -> str:
    return f"{restarts} restart{'s' if restarts > 1 else ''}"


_SERVER_SEVERITY = {"ready": Severity.GOOD, "starting": Severity.INFO, "not ready": Severity.WARNING}


def _models(was: ServerSample, server: ServerSample, told: _Teller) -> None:
    """Changes of state; where the server itself went or came, its models' going with it is no news."""
    if was.state != "ready" or server.state != "ready":
        return
    old = {(model.name, model.version): model for model in was.models}
    groups: dict[tuple[Severity, str], list[str]] = {}
    for model in server.models:
        for change in _model(old.pop((model.name, model.version), None), model):
            groups.setdefault(change, []).append(model_name(model))
    for model in old.values():
        groups.setdefault((Severity.INFO, "is no longer in the repository"), []).append(model_name(model))
    for (severity, words), names in groups.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        verb = f"are {words[3:]}" if len(names) > 1 and words.startswith("is ") else words
        told.add(Kind.MODEL, severity, f"{', '.join(names[:NAMED])}{more} {verb}", names[0])


def _model(was: ModelSample | None, model: ModelSample) -> Iterator[tuple[Severity, str]]:
    if was is None:
        if model.state == "READY":
            yield Severity.GOOD, "is loaded"
        else:
            yield Severity.INFO, f"is new: {condition(model)}"
        return
    if was.state != model.state:
        if model.state == "READY":
            yield Severity.GOOD, "is loaded"
        elif model.state in ("LOADING", "UNLOADING"):
            yield Severity.INFO, f"is {model.state}"
        else:
            unloaded = (model.reason or "") in ("", "unloaded")
            yield (Severity.INFO if unloaded else Severity.ERROR), f"is {condition(model)}"
    elif model.gap and model.gap.startswith("reset") and not (was.gap or "").startswith("reset"):
        yield Severity.INFO, f"began to count anew ({model.gap})"
