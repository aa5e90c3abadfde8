"""Streams, clocks and the machine itself."""

from __future__ import annotations

from typing import Any

import pytest

from console.domain.telemetry import rates
from console.domain.telemetry.builder import SampleBuilder
from console.domain.telemetry.sample import Sample
from tests.unit.telemetry_fake import FakeDroplet, FakeModel, Watched, model_of, watch, why


def cpu(seconds: float, busy: float, cores: int = 4) -> dict[str, Any]:
    """Processor times after ``seconds`` with a share of busy, a tenth of it system, 1 % iowait and steal each."""
    total = seconds * cores
    return {
        "cores": cores,
        "user": 0.9 * busy * total,
        "system": 0.1 * busy * total,
        "iowait": 0.01 * total,
        "steal": 0.01 * total,
        "idle": (0.98 - busy) * total,
    }


def droplet(**host: Any) -> Watched:
    watched = Watched(FakeDroplet(models={"echo": FakeModel()}, host=host))
    watched.tick()
    return watched


def test_processor_time_is_a_share_of_all_cores() -> None:
    watched = droplet(cpu=cpu(1000, 0.2), load1=0.5)
    watched.droplet.host["cpu"] = {name: value * 1.5 for name, value in cpu(1000, 0.2).items()} | {"cores": 4}
    sample = watched.tick()
    assert sample.host.cpu.busy_percent == pytest.approx(20)
    assert sample.host.cpu.iowait_percent == pytest.approx(1)
    assert sample.host.cpu.steal_percent == pytest.approx(1)
    assert (sample.host.cpu.cores, sample.host.cpu.load1) == (4, 0.5)


@pytest.mark.parametrize("name", ["idle", "iowait", "user"])
def test_a_kernel_counter_that_goes_back_is_no_share(name: str) -> None:
    watched = droplet(cpu=cpu(1000, 0.2))
    times = cpu(1001, 0.2)
    times[name] = cpu(1000, 0.2)[name] - 0.01
    watched.droplet.host["cpu"] = times
    sample = watched.tick()
    assert sample.host.cpu.busy_percent is None
    assert sample.unavailable["/host/cpu/busy_percent"] == "the kernel's processor times went back or stood still"
    watched.droplet.host["cpu"] = {key: value + 1 for key, value in times.items()} | {"cores": 4}
    assert watched.tick().host.cpu.busy_percent == pytest.approx(40)


def test_bytes_a_second_are_over_the_droplet_s_own_clock() -> None:
    watched = droplet(io={"read": 1000, "write": 0}, net={"rx": 5, "tx": 7})
    watched.droplet.host["io"] = {"read": 5000, "write": 100}
    watched.droplet.time += 3600
    host = watched.tick(seconds=2.0).host
    assert (host.disk_read_rate, host.disk_write_rate, host.net_rx_rate) == (2000.0, 50.0, 0.0)
    assert (host.disk_read_bytes, host.net_tx_bytes) == (5000, 7)


def test_a_counter_of_bytes_that_goes_back_is_a_reset() -> None:
    watched = droplet(net={"rx": 5000, "tx": 7})
    watched.droplet.host["net"] = {"rx": 10, "tx": 8}
    sample = watched.tick()
    assert sample.host.net_rx_rate is None
    assert sample.unavailable["/host/net_rx_rate"] == "reset: the counter went back"
    assert sample.host.net_tx_rate == 1.0


def test_a_reason_for_a_branch_speaks_for_its_figures() -> None:
    watched = droplet()
    watched.droplet.unavailable["/host/io"] = "no physical disk is visible from here"
    sample = watched.tick()
    for figure in ("disk_read_bytes", "disk_write_rate"):
        assert sample.unavailable[f"/host/{figure}"] == "no physical disk is visible from here"


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 1e8])
def test_wall_clocks_that_jump_on_either_side_change_no_rate(jump: float) -> None:
    model = FakeModel()
    watched = watch(echo=model)
    model.execute(1)
    watched.droplet.time += jump
    sample = watched.builder.feed(watched.droplet.line(), arrived=1_700_000_000.0 - jump, stream="one")
    assert sample is not None
    assert model_of(sample).rps == 1.0
    assert sample.interval == 1.0
    assert sample.host.uptime_s == watched.droplet.mono
    assert sample.clock_skew_s == pytest.approx(2 * jump + 2)


def test_time_is_this_side_s_own() -> None:
    watched = watch()
    sample = watched.builder.feed(watched.droplet.line(), arrived=42.0, stream="one")
    assert sample is not None
    assert (sample.time, sample.droplet, sample.stream) == (42.0, "lab", "one")


def gap_of(sample: Sample) -> str | None:
    gap = model_of(sample).gap
    if gap is not None:
        assert why(sample, "rps") == gap
    return gap


def test_the_first_sample_of_all_has_no_interval() -> None:
    watched = Watched(FakeDroplet(models={"echo": FakeModel()}))
    sample = watched.tick()
    assert sample.interval is None
    assert sample.unavailable["/interval"] == gap_of(sample) == rates.FIRST


def test_a_stream_that_starts_anew_is_a_gap_of_one_tick() -> None:
    model = FakeModel()
    watched = watch(echo=model)
    watched.stream, watched.droplet.seq, watched.droplet.sent = "two", -1, None
    model.execute(1)
    sample = watched.tick(seconds=30.0)
    assert gap_of(sample) == rates.STREAM
    assert sample.interval is None
    model.execute(1, 1)
    assert watched.model().rps == 2.0


def test_a_droplet_that_was_rebooted_is_a_gap_of_one_tick() -> None:
    watched = droplet(net={"rx": 5000, "tx": 7}, boot_id="one")
    watched.droplet.host.update(boot_id="two", net={"rx": 9000, "tx": 9000})
    watched.droplet.mono += 100
    watched.stream, watched.droplet.seq, watched.droplet.sent = "two", -1, None
    sample = watched.tick()
    assert gap_of(sample) == rates.REBOOT
    assert sample.unavailable["/host/net_rx_rate"] == rates.REBOOT
    assert watched.tick().host.net_rx_rate == 0.0


def test_a_clock_that_stands_still_or_goes_back_is_a_gap() -> None:
    watched = watch()
    for seconds in (0.0, -5.0):
        sample = watched.tick(seconds=seconds)
        assert gap_of(sample) == rates.CLOCK
        assert sample.interval is None
    assert gap_of(watched.tick()) is None


def test_two_ticks_too_close_together_make_no_rate_and_lose_none() -> None:
    model = FakeModel()
    watched = watch(echo=model)
    model.execute(1)
    sample = watched.tick(seconds=0.01)
    assert gap_of(sample) == rates.SHORT
    assert sample.interval == pytest.approx(0.01)
    model.execute(1)
    after = watched.tick(seconds=0.99)
    assert after.servers[0].models[0].rps == pytest.approx(2.0)
    assert after.interval == pytest.approx(0.99)


def test_missed_ticks_keep_their_rates_over_the_longer_time() -> None:
    model = FakeModel()
    watched = watch(echo=model)
    for _ in range(10):
        model.execute(1)
    sample = watched.tick(seconds=5.0, missed=4)
    assert (sample.missed, sample.interval) == (4, 5.0)
    assert model_of(sample).rps == 2.0


def test_lost_lines_are_silence_then_a_gap_then_all_is_well() -> None:
    model = FakeModel()
    watched = watch(echo=model)
    watched.droplet.full_every = 4
    watched.droplet.line()  # never arrives
    model.execute(1)
    assert watched.builder.feed(watched.droplet.line(), arrived=0.0, stream="one") is None
    assert watched.builder.problem == "the lines before 2 are lost"
    assert watched.builder.feed(watched.droplet.line(), arrived=0.0, stream="one") is None
    sample = watched.tick()
    assert (gap_of(sample), sample.missed) == (rates.LOST, 3)
    assert model_of(sample).requests == 1
    model.execute(1)
    assert watched.model().rps == 1.0
    assert watched.builder.problem is None


def test_the_same_line_again_makes_no_sample() -> None:
    watched = watch()
    line = watched.droplet.line()
    assert watched.builder.feed(line, arrived=0.0, stream="one") is not None
    assert watched.builder.feed(line, arrived=1.0, stream="one") is None
    assert watched.builder.problem is None
    assert watched.builder.unusable == 0


def test_two_droplets_know_nothing_of_each_other() -> None:
    one, two = watch(), watch()
    model = FakeModel()
    model.execute(1)
    two.droplet.models["echo"] = model
    assert one.model().requests == 0
    assert two.model().requests == 1


def test_what_is_no_line_of_a_tick_makes_no_sample() -> None:
    builder = SampleBuilder("lab")
    assert builder.feed({"error": "internal", "message": "x"}, arrived=0.0, stream="one") is None
    assert builder.unusable == 1
    assert builder.problem
