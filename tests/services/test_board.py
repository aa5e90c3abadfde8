"""The board: last words, histories and happenings, fed as the watch feeds it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from console.domain.telemetry.sample import GpuSample, ModelSample, Sample
from console.domain.telemetry.totals import ModelKey
from console.remote.errors import FailureKind, RemoteError
from console.services.board import HAPPENINGS, Board, Changes
from console.services.happenings import Kind, Severity
from console.services.history import GpuKey
from console.services.link import Event, LinkState, Phase
from tests.unit.cli.samples import gpu, model, sample, server

ECHO = ModelKey("triton", "echo", "1")


def at(second: float, **more: object) -> Sample:
    """A sample of that second."""
    return sample("a", time=1000.0 + second, seq=int(second), **more)


def feed(board: Board, *events: Sample | LinkState) -> list[str]:
    """What happened at that, in words."""
    told: list[str] = []
    for event in events:
        if isinstance(event, Sample):
            changes = board.feed(Event("a", sample=event))
        else:
            changes = board.feed(Event("a", link=event))
        told += [one.words for one in changes.happenings]
    return told


def link(phase: Phase, since: float, kind: FailureKind | None = None) -> LinkState:
    error = RemoteError(kind, f"a: {kind.value}") if kind is not None else None
    return LinkState(phase, phase.value, 1000.0 + since, error=error)


@pytest.fixture
def board() -> Board:
    board = Board(["a", "b"])
    feed(board, link(Phase.CONNECTING, 0), at(1), link(Phase.LIVE, 1))
    return board


def test_an_event_changes_its_droplet_alone(board: Board) -> None:
    assert board.droplets == ("a", "b")
    assert board.view("b").sample is None
    changes = board.feed(Event("b", sample=sample("b")))
    assert changes == Changes("b", sample=True, happenings=changes.happenings)
    with pytest.raises(KeyError):
        board.feed(Event("c", sample=sample("c")))


def test_what_is_known_at_first_is_told_with_its_own_time(board: Board) -> None:
    told = {one.words: one.time for one in board.view("a").happenings}
    assert told["booted"] == 1001.0 - 1_043_200.0
    assert "Triton started" in told
    assert told["connected"] == 1001.0


def test_a_loss_is_told_once_for_each_way_it_fails_and_the_return_with_how_long(board: Board) -> None:
    told = feed(
        board,
        link(Phase.STALLED, 3),
        link(Phase.WAITING, 10, FailureKind.LOST),
        link(Phase.CONNECTING, 11),
        link(Phase.WAITING, 12, FailureKind.REFUSED),
        link(Phase.CONNECTING, 14),
        link(Phase.WAITING, 15, FailureKind.REFUSED),
        at(33),
        link(Phase.LIVE, 33),
    )
    assert told == ["stalled", "a: connection lost", "a: refused", "live again after 30 s"]
    assert board.view("a").lost_at is None


def test_a_droplet_that_never_answered_was_not_lost() -> None:
    board = Board(["a"])
    told = feed(
        board, link(Phase.CONNECTING, 0), link(Phase.WAITING, 1, FailureKind.REFUSED), at(5), link(Phase.LIVE, 5)
    )
    assert told[0] == "a: refused"
    assert told[-1] == "connected"


def changed_server(**more: object) -> Callable[[Sample], Sample]:
    def change(before: Sample) -> Sample:
        return dataclasses.replace(before, servers=(dataclasses.replace(before.servers[0], **more),))  # type: ignore[arg-type]

    return change


def changed_gpu(**more: object) -> Callable[[Sample], Sample]:
    def change(before: Sample) -> Sample:
        return dataclasses.replace(before, gpus=(dataclasses.replace(before.gpus[0], **more),))  # type: ignore[arg-type]

    return change


@pytest.mark.parametrize(
    ("change", "kind", "severity", "words"),
    [
        (changed_server(state="stopped", models=()), Kind.SERVER, Severity.ERROR, "Triton is stopped"),
        (changed_server(restarts=1), Kind.SERVER, Severity.WARNING, "Triton was restarted, 1 restart by now"),
        (changed_server(pid=77), Kind.SERVER, Severity.WARNING, "Triton was restarted"),
        (changed_server(models=()), Kind.MODEL, Severity.INFO, "echo/1 is no longer in the repository"),
        (
            changed_server(models=(model(), model(name="new"))),
            Kind.MODEL,
            Severity.GOOD,
            "new/1 is loaded",
        ),
        (
            changed_server(models=(ModelSample("echo", "1", "UNAVAILABLE", reason="failed to load"),)),
            Kind.MODEL,
            Severity.ERROR,
            "echo/1 is UNAVAILABLE, failed to load",
        ),
        (
            changed_server(models=(ModelSample("echo", "1", "UNAVAILABLE", reason="unloaded"),)),
            Kind.MODEL,
            Severity.INFO,
            "echo/1 is UNAVAILABLE, unloaded",
        ),
        (
            changed_server(models=(model(gap="reset: the statistics began anew"),)),
            Kind.MODEL,
            Severity.INFO,
            "echo/1 began to count anew (reset: the statistics began anew)",
        ),
        (
            changed_gpu(state="lost", state_reason="off the bus"),
            Kind.GPU,
            Severity.ERROR,
            "GPU 0 is lost: off the bus",
        ),
        (
            changed_gpu(throttle=("HwThermalSlowdown",)),
            Kind.GPU,
            Severity.WARNING,
            "GPU 0 holds its clocks down: HwThermalSlowdown",
        ),
        (changed_gpu(ecc_uncorrected=3), Kind.GPU, Severity.ERROR, "GPU 0: 3 uncorrected ECC errors more"),
    ],
)
def test_what_changed_between_two_samples_is_told(
    change: Callable[[Sample], Sample], kind: Kind, severity: Severity, words: str
) -> None:
    board = Board(["a"])
    before = at(1, gpus=(gpu(0, ecc_uncorrected=0),), servers=(server(model(), pid=5, restarts=0),))
    feed(board, before)
    after = dataclasses.replace(change(before), time=1002.0)
    (told,) = board.feed(Event("a", sample=after)).happenings
    assert (told.kind, told.severity, told.words, told.time) == (kind, severity, words, 1002.0)


def test_the_unloading_that_goes_with_a_stop_is_not_told_model_by_model(board: Board) -> None:
    stopped = at(2, servers=(dataclasses.replace(server(), state="stopped", reason="the unit is inactive"),))
    assert feed(board, stopped) == ["Triton is stopped: the unit is inactive"]
    assert feed(board, at(3)) == ["Triton is ready"]


def test_many_models_that_change_at_once_are_one_happening(board: Board) -> None:
    many = tuple(model(name=f"m{number}") for number in range(500))
    feed(board, at(2, servers=(server(*many),)))
    told = feed(board, at(3, servers=(server(*(dataclasses.replace(one, state="UNLOADING") for one in many)),)))
    assert told == ["m0/1, m1/1, m2/1, m3/1, m4/1, m5/1 and 494 more are UNLOADING"]


def test_a_gpu_that_came_back_and_one_that_went_are_told(board: Board) -> None:
    lost = GpuSample(index=0, uuid="GPU-0", state="lost")
    assert feed(board, at(2, gpus=(lost,)))[0] == "GPU 0 is lost"
    assert feed(board, at(3)) == ["GPU 0 is back"]
    assert feed(board, at(4, gpus=(gpu(1),))) == ["GPU 1 is there", "GPU 0 is gone"]
    assert feed(board, at(5, gpus=(), unavailable={"/gpus": "no driver"})) == ["no GPU figures: no driver"]


def test_a_reboot_is_told(board: Board) -> None:
    rebooted = at(2)
    host = dataclasses.replace(rebooted.host, boot_id="other")
    assert feed(board, dataclasses.replace(rebooted, host=host)) == ["rebooted"]


def test_figures_have_a_history_each(board: Board) -> None:
    for second in range(2, 11):
        feed(
            board, at(second, servers=(server(model(rps=float(second))),), gpus=(gpu(0, dram_percent=second * 2),))
        )
    view = board.view("a")
    for of in (None, ECHO):
        series = view.series("rps", of)
        assert series is not None
        assert [value for _, _, value in series.points(1001.5)] == [2, 3, 4, 5, 6, 7, 8, 9, 10]
    series = view.series("dram_percent", GpuKey("GPU-0"))
    assert series is not None
    assert series.last() == 20
    assert view.series("rps", ModelKey("triton", "other", "1")) is None


def test_late_ticks_touch_and_lost_ones_leave_a_gap(board: Board) -> None:
    feed(board, at(2.4), at(3.1), at(8, missed=4))
    series = board.view("a").series("rps")
    assert series is not None
    starts_ends = [(start - 1000, end - 1000) for start, end, _ in series.points()]
    assert starts_ends == [
        (0.0, 1.0),
        (1.0, pytest.approx(2.4)),
        (pytest.approx(2.4), pytest.approx(3.1)),
        (7.0, 8.0),
    ]


def test_a_clock_that_is_set_back_begins_the_history_anew_and_says_so(board: Board) -> None:
    assert feed(board, at(-500)) == ["this machine's clock was set back: the graphs begin anew"]
    series = board.view("a").series("rps")
    assert series is not None
    assert len(series) == 1


def test_batch_sizes_are_counted_over_a_minute_and_no_longer(board: Board) -> None:
    for second in range(2, 200):
        feed(board, at(second, servers=(server(model(window_batches={1: 2, 8: 1, 4: 0})),)))
    view = board.view("a")
    assert view.batches(1199.0) == {1: 120, 8: 60}
    assert view.batches(1199.0, 10.0, ECHO) == {1: 20, 8: 10}
    assert view.batches(1199.0, of=ModelKey("triton", "other", "1")) == {}


def test_it_is_bounded_however_long_it_runs() -> None:
    board = Board(["a"], points=100)
    for second in range(1, 1500):
        models = tuple(model(name=f"m{number}") for number in range(40))
        state = "ready" if second % 2 else "not ready"
        feed(board, at(second, servers=(server(*models, state=state),), gpus=tuple(gpu(one) for one in range(3))))
    view = board.view("a")
    assert len(view.happenings) == HAPPENINGS
    kept = view._history._series
    assert len({of for of, _ in kept}) <= 1 + 16 + 3
    assert all(len(series) <= 100 for series in kept.values())


def test_a_hundred_droplets_have_shorter_histories_than_one() -> None:
    few, many = Board(["a"]), Board([f"d{number}" for number in range(100)])
    assert few.view("a")._history._points == 3600
    assert many.view("d0")._history._points == 720


def test_several_servers_have_a_history_each() -> None:
    board = Board(["a"])
    two = (server(model(rps=1.0)), dataclasses.replace(server(model(rps=5.0)), name="other"))
    feed(board, at(1, servers=two), at(2, servers=two))
    view = board.view("a")
    whole = view.series("rps", ModelKey("other", "", ""))
    assert whole is not None
    assert whole.last() == 5.0
    assert view.totals.rps == 6.0
    assert view.totals_of(ModelKey("other", "", "")).rps == 5.0
