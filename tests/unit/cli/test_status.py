from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path

import pytest

from console.cli import status, watch
from console.cli.exits import Exit, UsageError
from console.cli.options import Options
from console.domain.telemetry.sample import Failures, ModelSample, Sample
from console.domain.words.cells import width
from console.remote.errors import FailureKind, RemoteError
from console.services.link import Event, Phase
from console.settings.schema import Droplet
from tests.unit.cli.fakes import install, kept, link, sampled, settings_file, text
from tests.unit.cli.samples import NO_GPM, gpu, model, sample, server, troubled


def options(folder: Path, **more: object) -> Options:
    file = settings_file(folder, "droplets: {prod: {group: live}, spare: {group: live}}")
    return dataclasses.replace(Options(config=file), **more)  # type: ignore[arg-type]


def first(droplet: str = "prod") -> Event:
    return sampled(dataclasses.replace(sample(droplet), interval=None, seq=0))


def test_waits_for_the_sample_that_has_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = install(
        monkeypatch, [link("prod", Phase.CONNECTING), first(), link("prod", Phase.LIVE), sampled(sample())]
    )
    output = kept()
    assert status.run(["prod"], options(tmp_path, json=True), first=False, output=output) is Exit.DONE
    document = json.loads(text(output.out))
    assert document["schema"] == "status/1"
    assert [(one["schema"], one["droplet"], one["seq"]) for one in document["droplets"]] == [
        ("sample/1", "prod", 1)
    ]
    assert opened.fleet.closed
    assert [droplet.interval for droplet in opened.droplets] == [1.0]
    assert text(output.err) == ""


def test_first_takes_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [first(), sampled(sample())])
    output = kept()
    status.run(["prod"], options(tmp_path, json=True), first=True, output=output)
    assert json.loads(text(output.out))["droplets"][0]["seq"] == 0


def test_a_droplet_that_dies_after_its_first_sample_is_shown_by_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = RemoteError(FailureKind.LOST, "the connection to prod was lost")
    install(monkeypatch, [first(), link("prod", Phase.WAITING, error=lost)])
    output = kept()
    assert status.run(["prod"], options(tmp_path, json=True), first=False, output=output) is Exit.DONE
    assert json.loads(text(output.out))["droplets"][0]["seq"] == 0


@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.FAILED])
def test_a_failure_stands_in_the_samples_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: Phase
) -> None:
    error = RemoteError(FailureKind.REFUSED, "spare: port 22 refuses connections", hint="is sshd running?")
    install(monkeypatch, [link("spare", phase, error=error), first(), sampled(sample())])
    output = kept()
    assert status.run(["@live"], options(tmp_path, json=True), first=False, output=output) is Exit.NO_CONNECTION
    good, bad = json.loads(text(output.out))["droplets"]
    assert good["droplet"] == "prod"
    assert bad["droplet"] == "spare"
    assert bad["error"] == {
        "kind": "refused",
        "message": "spare: port 22 refuses connections",
        "hint": "is sshd running?",
    }


def test_a_turn_among_rationed_logins_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rationed = RemoteError(FailureKind.LIMITED, "prod: 4 logins in 30 s", hint="The next one is due in 1 s.")
    install(monkeypatch, [link("prod", Phase.WAITING, error=rationed), sampled(sample())])
    output = kept()
    assert status.run(["prod"], options(tmp_path, json=True), first=False, output=output) is Exit.DONE
    assert json.loads(text(output.out))["droplets"][0]["seq"] == 1

    install(monkeypatch, [link("prod", Phase.WAITING, error=rationed)])
    output = kept()
    given = options(tmp_path, timeout=0.3)
    assert status.run(["prod"], given, first=False, output=output) is Exit.NO_CONNECTION
    assert "4 logins in 30 s" in text(output.out)


class Rationed:
    """A droplet whose turn comes long after the usual time-out; a second passes with each look."""

    def __init__(self, turn: float) -> None:
        self.now = 0.0
        self._turn = turn

    def events(self, timeout: float) -> Event | None:
        self.now += 1
        error = RemoteError(FailureKind.LIMITED, "prod: 4 logins in 30 s", retry_after=20.0)
        if self.now % 20 == 1 and self.now < self._turn:
            return link("prod", Phase.WAITING, "prod: 4 logins in 30 s; trying again in 20 s", error)
        return sampled(sample()) if self.now >= self._turn else None

    def __enter__(self) -> Rationed:
        return self

    def __exit__(self, *_: object) -> None:
        return None


@pytest.mark.parametrize(("turn", "turns", "given"), [(95, 120, True), (95, 0, False), (300, 120, False)])
def test_a_turn_may_come_long_after_the_usual_time_out(turn: float, turns: float, given: bool) -> None:
    told: list[str] = []
    fleet = Rationed(turn)
    collector = status.Collector(
        [Droplet("prod")],
        first=False,
        timeout=30,
        waited=lambda: 0.0,
        turns=turns,
        tell=told.append,
        clock=lambda: fleet.now,
    )
    assert (collector.collect(fleet)["prod"] == sample()) is given
    assert fleet.now <= 31 + turns
    assert told == ["prod: 4 logins in 30 s; trying again in 20 s"] * bool(turns)


def test_silence_ends_with_the_time_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [])
    output = kept()
    given = options(tmp_path, json=True, timeout=0.05)
    assert status.run(["prod"], given, first=False, output=output) is Exit.NO_CONNECTION
    (failed,) = json.loads(text(output.out))["droplets"]
    assert failed["error"]["kind"] == "timed out"
    assert "within 0.05 s" in failed["error"]["message"]


def test_the_time_a_person_takes_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    steps = iter([None] * 20)

    class Slow:
        def events(self, timeout: float) -> Event | None:
            now[0] += 10
            return next(steps, sampled(sample()))

        def __enter__(self) -> Slow:
            return self

        def __exit__(self, *_: object) -> None:
            return None

    collector = status.Collector(
        [Droplet("prod")], first=False, timeout=30, waited=lambda: now[0] * 0.9, clock=lambda: now[0]
    )
    assert collector.collect(Slow())["prod"] == sample()


def test_what_is_not_well_decides_the_exit_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [sampled(troubled())])
    output = kept()
    assert status.run(["prod"], options(tmp_path), first=False, output=output) is Exit.NOT_WELL
    shown = text(output.out)
    assert "!! GPU 3 is lost: the GPU has fallen off the bus" in shown
    assert "!! model broken/1 on triton is UNAVAILABLE" in shown


def test_one_server_of_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = sample(
        servers=(server(model(), name="a"), server(model(name="b-model", hit_rate=None), name="b")),
        unavailable={
            "/servers/0/models/0/rps": "of a",
            "/servers/1/models/0/hit_rate": "of b",
            "/servers/10": "of another",
            "/host/cpu": "of the host",
        },
    )
    install(monkeypatch, [sampled(both)])
    output = kept()
    assert status.run(["prod"], options(tmp_path, json=True, server="b"), first=False, output=output) is Exit.DONE
    (one,) = json.loads(text(output.out))["droplets"]
    assert [server["name"] for server in one["servers"]] == ["b"]
    assert one["unavailable"] == {"/servers/0/models/0/hit_rate": "of b", "/host/cpu": "of the host"}

    install(monkeypatch, [sampled(both)])
    output = kept()
    assert status.run(["prod"], options(tmp_path, json=True, server="c"), first=False, output=output) is Exit.USAGE
    (none,) = json.loads(text(output.out))["droplets"]
    assert none["error"]["message"] == "prod has no Triton server 'c'; there is a, b"


def test_a_slip_in_a_name_is_met_with_the_nearest_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = RemoteError(FailureKind.NAME_NOT_RESOLVED, "prdo: no such host")
    install(monkeypatch, [link("prdo", Phase.FAILED, error=error)])
    output = kept()
    assert status.run(["prdo"], options(tmp_path), first=False, output=output) is Exit.NO_CONNECTION
    assert "Did you mean prod? The settings know that name." in text(output.out)


def test_the_picture_fits_80_columns_and_explains_every_na(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [sampled(troubled())])
    output = kept(terminal=True)
    status.run(["prod"], options(tmp_path), first=False, output=output)
    lines = text(output.out).splitlines()
    assert max(width(line) for line in lines) <= 80
    flat = " ".join(" ".join(lines).split())
    assert f"DRAM, GB/s of GPU 2: n/a, because {NO_GPM}" in flat
    assert "HIT RATE, BATCH, FILL of stream/1: n/a, because the model is decoupled" in flat
    assert "no reason" not in flat
    assert "\x1b" not in flat


def test_a_pipe_gets_no_colour_and_whole_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a-model-name-that-is-much-longer-than-any-column-could-be-on-a-terminal"
    install(monkeypatch, [sampled(sample(servers=(server(model(name=name)),)))])
    output = kept()
    status.run(["prod"], options(tmp_path), first=False, output=output)
    assert name in text(output.out)
    assert "\x1b" not in text(output.out)


def test_colour_on_a_terminal_marks_production(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = settings_file(tmp_path, "droplets: {prod: {production: true, colour: magenta}}")
    install(monkeypatch, [sampled(sample())])
    output = kept(terminal=True, colour=True)
    status.run(["prod"], Options(config=file), first=False, output=output)
    heading = text(output.out).splitlines()[0]
    assert heading.startswith("\x1b[1;35mprod\x1b[0m  \x1b[1;31mPRODUCTION\x1b[0m")


def test_ascii_where_the_locale_is_not_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [sampled(sample(servers=(server(model(name="modèle", queue_ms=0.02)),)))])
    output = kept(unicode=False)
    status.run(["prod"], options(tmp_path), first=False, output=output)
    shown = text(output.out)
    assert "62 C" in shown
    assert "20 us" in shown
    assert "mod?le" in shown


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "\x1b]0;owned\x07\x9b2J\x1b[2J\r\u202e[red]x[/red]"
    install(monkeypatch, [sampled(sample(servers=(server(model(name=evil), name=evil),)))])
    output = kept(terminal=True, colour=True)
    status.run(["prod"], options(tmp_path), first=False, output=output)
    shown = text(output.out)
    for harmful in ("\x1b]", "\x07", "\x9b", "\x1b[2J", "\r", "\u202e"):
        assert harmful not in shown
    assert "[red]x[/red]" in shown


def test_json_is_ascii_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "\x1b]0;owned\x07\u202e\n\ud800"
    install(monkeypatch, [sampled(sample(servers=(server(model(name=evil)),)))])
    output = kept()
    status.run(["prod"], options(tmp_path, json=True), first=False, output=output)
    (line,) = text(output.out).splitlines()
    assert line.isascii()
    assert json.loads(line)["droplets"][0]["servers"][0]["models"][0]["name"] == evil


def test_droplets_without_gpu_or_triton_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = sample(gpus=(), servers=(), unavailable={"/gpus": "no NVIDIA driver is loaded"})
    install(monkeypatch, [sampled(bare)])
    output = kept()
    assert status.run(["prod"], options(tmp_path), first=False, output=output) is Exit.DONE
    shown = text(output.out)
    assert "n/a, because no NVIDIA driver is loaded" in shown
    assert "TRITON  none" in shown


def test_an_unknown_group_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean live"):
        status.run(["@life"], options(tmp_path), first=False, output=kept())


def test_a_list_of_models_that_is_not_whole_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "Triton restricts access to its repository index (403)"
    install(monkeypatch, [sampled(sample(unavailable={"/servers/0/models": reason}))])
    output = kept()
    status.run(["prod"], options(tmp_path), first=False, output=output)
    flat = " ".join(text(output.out).split())
    assert "echo/1 812" in flat
    assert f"not all can be told about the models: {reason}" in flat


def test_mig_devices_are_told_from_gpus_of_the_same_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [gpu(number, uuid=f"MIG-{number}", parent="GPU-1", mig=True, power_w=None) for number in (0, 1)]
    both = sample(gpus=(gpu(0), gpu(1, mig=True), *parts), unavailable={"/gpus/3/power_w": "see its GPU"})
    install(monkeypatch, [sampled(both), sampled(both)])
    output = kept()
    status.run(["prod"], options(tmp_path), first=False, output=output)
    shown = text(output.out)
    assert [line.split()[0] for line in shown.splitlines() if "H100" in line] == ["0", "1", "1:0", "1:1"]
    assert "figures by NVML; DRAM by NVML GPM of 3,352 GB/s peak" in shown
    assert "POWER of GPU 1:1: n/a, because see its GPU" in shown
    output = kept()
    watch.run(["prod"], options(tmp_path), interval=None, count=1, output=output)
    assert [line.split()[2] for line in text(output.out).splitlines() if " util " in line] == [
        "0",
        "1",
        "1:0",
        "1:1",
    ]


def test_a_driver_without_gpus_is_no_mystery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [sampled(sample(gpus=()))])
    output = kept()
    status.run(["prod"], options(tmp_path), first=False, output=output)
    assert "GPU     none: the driver works and finds no GPU" in text(output.out)


def test_models_that_nobody_loaded_share_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [ModelSample(f"other_{number}", "-", "UNKNOWN") for number in range(9)]
    install(monkeypatch, [sampled(sample(servers=(server(model(), *others, control_mode="explicit"),)))])
    output = kept(terminal=True)
    assert status.run(["prod"], options(tmp_path), first=False, output=output) is Exit.DONE
    shown = text(output.out)
    assert ", 1 model ready" in shown
    (line,) = [line for line in shown.splitlines() if "other_" in line]
    assert line == "  9 in the repository, not loaded: other_0, other_1, other_2, other_3, 5 more"
    assert "UNKNOWN" not in shown


def printed(monkeypatch: pytest.MonkeyPatch, folder: Path, shown: Sample) -> list[str]:
    install(monkeypatch, [sampled(shown)])
    output = kept(terminal=True)
    status.run(["prod"], options(folder), first=False, output=output)
    return text(output.out).splitlines()


def test_the_verdict_and_the_problems_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third, *_ = printed(monkeypatch, tmp_path, troubled())
    assert first.startswith("prod  2 problems  (ml-h100)  up 12 d 1 h  ")
    assert second == "!! GPU 3 is lost: the GPU has fallen off the bus"
    assert third.startswith("!! model broken/1 on triton is UNAVAILABLE")
    assert printed(monkeypatch, tmp_path, sample())[0].startswith("prod  well  ")


def test_a_healthy_droplet_with_four_models_fits_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle: dict[str, object] = {
        "rps": 0.0,
        "hit_rate": None,
        "mean_batch": None,
        "queue_ms": None,
        "window_batches": {},
        "average": {},
    }
    models = (
        model(p95_ms=3.1, failures=Failures()),
        model(name="other", p95_ms=44.1, failures=Failures()),
        model(name="quiet", requests=5, **idle),
        model(name="unused", requests=0, last_inference=None, failures=Failures(), **idle),
        *(ModelSample(f"other_{number}", "-", "UNKNOWN") for number in range(9)),
    )
    ports = {"http": "0.0.0.0:8000", "grpc": "0.0.0.0:8001", "metrics": "0.0.0.0:8002"}
    lines = printed(monkeypatch, tmp_path, sample(servers=(server(*models, control_mode="explicit", **ports),)))
    assert len(lines) <= 23, "24 lines with the prompt"
    assert "        unit triton.service, HTTP 0.0.0.0:8000, gRPC :8001, metrics :8002" in lines
    quiet, failed = [line for line in lines if "quiet" in line]
    assert quiet.startswith("  no traffic: quiet/1 idle since ")
    assert quiet.endswith(", unused/1 never used")
    assert failed == "  quiet/1 failed since the server's start: 3 BACKEND, 2 REJECTED"
    assert "n/a" not in "".join(lines)
    assert "".join(lines).count(time.strftime("%Z", time.localtime(1_796_000_001))) == 1


def test_a_model_in_which_requests_wait_is_not_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, tmp_path, sample(servers=(server(model(rps=0.0, pending=7)),)))
    assert any("7 requests waiting" in line for line in lines)
    assert not any("no traffic" in line for line in lines)


def test_a_failure_is_a_line_on_stderr_where_stdout_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = RemoteError(FailureKind.REFUSED, "prod: port 22 refuses\nconnections", hint="is sshd running?")
    for terminal, said in ((False, "droplet-console: prod: port 22 refuses connections\n"), (True, "")):
        install(monkeypatch, [link("prod", Phase.FAILED, error=error)])
        output = kept(terminal=terminal)
        status.run(["prod"], options(tmp_path), first=False, output=output)
        assert text(output.err) == said
        assert text(output.out).splitlines()[0] == "prod  no figures"


def test_a_command_to_copy_stays_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = f"  ssh-keygen -f /root/.ssh/known_hosts -R {'name' * 20}"
    error = RemoteError(FailureKind.HOST_KEY_CHANGED, "prod: changed", hint=f"{'word ' * 20}\n{command}")
    install(monkeypatch, [link("prod", Phase.FAILED, error=error)])
    output = kept(terminal=True)
    status.run(["prod"], options(tmp_path), first=False, output=output)
    lines = text(output.out).splitlines()
    assert lines[-1] == "   " + command
    assert max(width(line) for line in lines[:-1]) <= 80
