import dataclasses
import json
from pathlib import Path

import pytest

from console.cli import watch
from console.cli.exits import Exit, UsageError
from console.cli.options import Options
from console.domain.telemetry.sample import ModelSample
from console.domain.words.cells import width
from console.remote.errors import FailureKind, RemoteError
from console.services.link import Event, Phase
from tests.unit.cli.fakes import install, kept, link, sampled, settings_file, text
from tests.unit.cli.samples import GIB, NO_GPM, gpu, model, sample, server, troubled


def options(folder: Path, **more: object) -> Options:
    file = settings_file(folder, "interval: 2\ndroplets: {prod: {}, spare: {interval: 5}}")
    return dataclasses.replace(Options(config=file), **more)  # type: ignore[arg-type]


def ticks(count: int, droplet: str = "prod") -> list[Event]:
    return [sampled(dataclasses.replace(sample(droplet), seq=seq)) for seq in range(count)]


def test_json_lines_on_stdout_and_nothing_else_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [link("prod", Phase.CONNECTING), *ticks(1), link("prod", Phase.LIVE), *ticks(5)[1:]])
    output = kept()
    given = options(tmp_path, json=True)
    assert watch.run(["prod"], given, interval=None, count=3, output=output) is Exit.DONE
    documents = [json.loads(line) for line in text(output.out).splitlines()]
    assert [(one["schema"], one["seq"]) for one in documents] == [("sample/1", 0), ("sample/1", 1), ("sample/1", 2)]
    assert [line.split(" ", 1)[1] for line in text(output.err).splitlines()] == ["prod: connecting", "prod: live"]


def test_the_interval_is_the_flags_then_the_droplets_then_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [*ticks(1), *ticks(1, "spare")]
    opened = install(monkeypatch, both)
    watch.run(["prod", "spare"], options(tmp_path), interval=None, count=1, output=kept())
    assert [droplet.interval for droplet in opened.droplets] == [2, 5]
    opened = install(monkeypatch, both)
    watch.run(["prod", "spare"], options(tmp_path), interval=0.5, count=1, output=kept())
    assert [droplet.interval for droplet in opened.droplets] == [0.5, 0.5]
    with pytest.raises(UsageError, match=r"0\.1 seconds at least"):
        watch.run(["prod"], options(tmp_path), interval=0.01, count=1, output=kept())


def test_people_get_a_line_for_each_model_gpu_and_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [sampled(troubled())])
    output = kept(terminal=True)
    watch.run(["prod"], options(tmp_path), interval=None, count=1, output=output)
    lines = text(output.out).splitlines()
    assert lines[0].split() == ["MODEL", "RPS", "HIT", "%", "BATCH", "ERR", "%", "QUEUE", "INFER", "WAIT"]
    assert lines[1].split()[1:] == ["echo/1", "812", "87.5", "8.00", "<0.1", "1.20", "ms", "3.40", "ms", "3"]
    assert all(width(line) <= 80 for line in lines[:3])
    assert any("gpu 3  LOST: the GPU has fallen off the bus" in line for line in lines)
    assert next(line for line in lines if "broken" in line).endswith(
        "broken/1: UNAVAILABLE, failed to stat file /models/broken/1/model.onnx"
    )
    assert f"gpu 2: dram n/a, because {NO_GPM}" in " ".join(text(output.out).split())


def test_reasons_are_told_when_they_change_and_headings_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = dataclasses.replace(sample(), servers=(server(state="dead", reason="signal 9"),))
    install(monkeypatch, [*ticks(30), sampled(gone), sampled(gone), *ticks(1)])
    output = kept()
    watch.run(["prod"], options(tmp_path), interval=None, count=33, output=output)
    lines = [line.split(" ", 1)[1].strip() for line in text(output.out).splitlines()]
    assert [line for line in lines if line.startswith("triton:")] == [
        "triton: ready",
        "triton: dead: signal 9",
        "triton: ready",
    ]
    assert len([line for line in lines if line.split() == ["triton", "DEAD"]]) == 2  # each tick, not only the first
    assert len([line for line in lines if line.startswith("MODEL")]) == 5


def test_a_gap_is_told_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reset = model(gap="reset: the model was reloaded", rps=None, hit_rate=None, mean_batch=None, error_percent=None)
    install(monkeypatch, [sampled(sample(servers=(server(reset),)))])
    output = kept()
    watch.run(["prod"], options(tmp_path), interval=None, count=1, output=output)
    assert "echo/1: n/a, because reset: the model was reloaded" in text(output.out)


def test_waiting_goes_on_and_failing_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = RemoteError(FailureKind.LOST, "prod: connection lost")
    changed = RemoteError(FailureKind.HOST_KEY_CHANGED, "prod: its host key changed", hint="ssh-keygen -R prod")
    install(
        monkeypatch,
        [
            *ticks(1),
            link("prod", Phase.WAITING, "connection lost; trying again in 1 s", lost),
            *ticks(1),
            link("prod", Phase.FAILED, "its host key changed", changed),
        ],
    )
    output = kept()
    given = options(tmp_path, json=True)
    assert watch.run(["prod"], given, interval=None, count=None, output=output) is Exit.NO_CONNECTION
    assert len(text(output.out).splitlines()) == 2
    said = text(output.err)
    assert "prod: connection lost; trying again in 1 s" in said
    assert said.endswith("droplet-console: prod: its host key changed\nssh-keygen -R prod\n")


def test_a_droplet_is_named_once_a_line_and_a_failure_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "prod (root@203.0.113.10) accepts none of the keys offered for root."
    refused = RemoteError(FailureKind.NO_KEY_ACCEPTED, words)
    refuses = "prod (root@203.0.113.10:22): port 22 refuses the connection; trying again in 1 s"
    install(
        monkeypatch, [link("prod", Phase.WAITING, refuses, refused), link("prod", Phase.FAILED, words, refused)]
    )
    output = kept()
    watch.run(["prod"], options(tmp_path), interval=None, count=None, output=output)
    first, *others = text(output.err).splitlines()
    assert first.split(" ", 1)[1] == refuses
    assert others == [f"droplet-console: {words}"]


def test_a_new_round_trip_time_is_no_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [link("prod", Phase.LIVE), *ticks(1), link("prod", Phase.LIVE), *ticks(1)])
    output = kept()
    watch.run(["prod"], options(tmp_path), interval=None, count=2, output=output)
    assert text(output.err).count("live") == 1


def test_silence_beyond_the_time_out_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, ticks(1))
    output = kept()
    given = options(tmp_path, timeout=0.05)
    assert watch.run(["prod"], given, interval=None, count=None, output=output) is Exit.NO_CONNECTION
    assert "nothing came from prod for 0.05 s" in text(output.err)


def test_a_server_must_be_there_at_first_and_may_go_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, ticks(1))
    with pytest.raises(UsageError, match="prod has no Triton server 'other'; there is triton"):
        watch.run(["prod"], options(tmp_path, server="other"), interval=None, count=1, output=kept())

    without = dataclasses.replace(sample(), servers=())
    install(monkeypatch, [*ticks(1), sampled(without), *ticks(1)])
    output = kept()
    given = options(tmp_path, server="triton", json=True)
    watch.run(["prod"], given, interval=None, count=3, output=output)
    documents = [json.loads(line) for line in text(output.out).splitlines()]
    assert [len(one["servers"]) for one in documents] == [1, 0, 1]
    assert documents[1]["unavailable"]["/servers"] == "there is no Triton server triton just now"


def test_several_droplets_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [*ticks(1), *ticks(1, "spare")])
    output = kept()
    watch.run(["prod", "spare"], options(tmp_path), interval=None, count=1, output=output)
    lines = text(output.out).splitlines()
    assert any(line.split()[1:3] == ["prod", "echo/1"] for line in lines)
    assert any(line.split()[1:3] == ["spare", "echo/1"] for line in lines)


def test_models_with_one_reason_share_a_line_and_silence_is_no_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = {"/servers/0/models/2/hit_rate": "no traffic in this window"}
    models = (
        model(name="a", gap="the first sample"),
        model(name="b", gap="the first sample"),
        model(name="c", rps=0.0, hit_rate=None),
    )
    install(monkeypatch, [sampled(sample(servers=(server(*models),), unavailable=idle))])
    output = kept()
    watch.run(["prod"], options(tmp_path), interval=None, count=1, output=output)
    shown = text(output.out)
    assert "a/1, b/1: n/a, because the first sample\n" in shown
    assert "no traffic" not in shown


def test_models_of_several_servers_stand_under_their_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = model(name="broken", state="UNAVAILABLE", reason="no backend")
    servers = (server(model(), broken, name="a"), server(model(), name="b"), server(name="c", state="starting"))
    install(monkeypatch, [sampled(sample(servers=servers))])
    output = kept(terminal=True)
    watch.run(["prod"], options(tmp_path), interval=None, count=1, output=output)
    lines = text(output.out).splitlines()
    assert [line.split()[1] for line in lines[1:6]] == ["a", "echo/1", "b", "echo/1", "c"]
    assert lines[5].endswith(" STARTING")
    assert any(line.endswith("broken/1 on a: UNAVAILABLE, no backend") for line in lines)


def test_lines_keep_within_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [model(name=f"model_{number}", gap="the first sample: a rate needs two") for number in range(12)]
    hot = gpu(0, utilization_percent=100, dram_percent=100.0, memory_used=120 * GIB, memory_total=141 * GIB)
    install(monkeypatch, [sampled(sample(gpus=(hot, gpu(1)), servers=(server(*many),)))])
    output = kept(terminal=True)
    watch.run(["prod"], options(tmp_path), interval=None, count=1, output=output)
    assert max(width(line) for line in text(output.out).splitlines()) <= 80


def test_models_that_nobody_loaded_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resting = [ModelSample(name, "-", "UNKNOWN") for name in ("a", "b")]
    served = sampled(sample(servers=(server(model(), *resting, control_mode="explicit"),)))
    install(monkeypatch, [served, served])
    output = kept()
    watch.run(["prod"], options(tmp_path), interval=None, count=2, output=output)
    shown = text(output.out)
    assert shown.count(" in the repository, not loaded: a, b\n") == 1
    assert "UNKNOWN" not in shown


def unknown(name: str, *, phase: Phase = Phase.WAITING) -> Event:
    words = f"The name {name} is not known"
    error = RemoteError(FailureKind.NAME_NOT_RESOLVED, f"{words}.", hint="Check the spelling.")
    return link(name, phase, f"{words}; trying again in 1 s", error)


def test_a_name_that_nobody_knows_is_looked_up_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = [link("prdo", Phase.CONNECTING), unknown("prdo")] * 5
    install(monkeypatch, tries)
    output = kept()
    given = options(tmp_path)
    assert watch.run(["prdo"], given, interval=None, count=None, output=output) is Exit.NO_CONNECTION
    said = [line.split(" ", 1)[1] for line in text(output.err).splitlines()]
    assert said == [
        "prdo: connecting",
        "prdo: The name prdo is not known; trying again in 1 s",
        "you mean prod? The settings know that name.",
        "the spelling.",
        "prdo: connecting",
        "prdo: The name prdo is not known; trying again in 1 s",
        "prdo: connecting",
        "The name prdo is not known.",
    ]


def test_a_name_that_was_found_before_is_looked_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [*ticks(1), *[unknown("prod")] * 5, *ticks(2)[1:]])
    output = kept()
    assert watch.run(["prod"], options(tmp_path), interval=None, count=2, output=output) is Exit.DONE


def test_a_time_out_ends_with_the_last_known_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = RemoteError(FailureKind.REFUSED, "prod refuses the connection.", hint="Is its sshd up?")
    install(monkeypatch, [link("prod", Phase.WAITING, "prod refuses the connection; trying again in 1 s", refused)])
    output = kept()
    given = options(tmp_path, timeout=0.05)
    assert watch.run(["prod"], given, interval=None, count=None, output=output) is Exit.NO_CONNECTION
    said = text(output.err)
    assert said.endswith("droplet-console: nothing came from prod for 0.05 s: prod refuses the connection.\n")
    assert said.count("Is its sshd up?") == 1


def test_when_the_next_turn_is_is_not_said_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = RemoteError(FailureKind.LIMITED, "prod: 4 logins in 30 s", hint="The next one is due in 14 s.")
    install(monkeypatch, [link("prod", Phase.WAITING, "prod: 4 logins; trying again in 15 s", limited), *ticks(1)])
    output = kept()
    watch.run(["prod"], options(tmp_path), interval=None, count=1, output=output)
    assert "trying again in 15 s" in text(output.err)
    assert "due in" not in text(output.err)
