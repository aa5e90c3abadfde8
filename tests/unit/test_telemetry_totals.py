from __future__ import annotations

import dataclasses

import pytest

from console.domain.telemetry.sample import GpuSample, ModelSample
from console.domain.telemetry.totals import ModelKey, find, keys, totals
from tests.unit.cli.samples import GIB, gpu, model, sample, server

FULL = {
    "rps": 800.0, "executions_per_s": 100.0, "hit_rate": 87.5, "mean_batch": 8.0, "fill_percent": 100.0,
    "error_percent": 0.0, "queue_ms": 4.0, "compute_input_ms": 1.0, "compute_infer_ms": 10.0,
    "compute_output_ms": 1.0, "request_ms": 16.0, "pending": 3, "window_batches": {8: 100},
}  # fmt: skip
ALONE = {
    **FULL, "name": "alone", "rps": 100.0, "executions_per_s": 100.0, "hit_rate": 0.0, "mean_batch": 1.0,
    "fill_percent": 12.5, "queue_ms": 0.0, "pending": 1, "window_batches": {1: 100},
}  # fmt: skip


def test_one_model_alone_gives_its_own_figures() -> None:
    found = totals(sample(servers=(server(model(**FULL)),)))
    assert (found.rps, found.hit_rate, found.mean_batch, found.queue_ms) == (800.0, 87.5, 8.0, 4.0)
    assert found.compute_ms == 12.0
    assert found.models == 1


def test_a_hit_rate_over_models_is_over_their_requests() -> None:
    found = totals(sample(servers=(server(model(**FULL), model(**ALONE)),)))
    # 900 requests in 200 executions.
    assert found.hit_rate == pytest.approx(100 * (1 - 200 / 900))
    assert found.mean_batch == pytest.approx(4.5)
    assert found.rps == 900.0
    assert found.queue_ms == pytest.approx(4.0 * 800 / 900)
    assert found.batches == {8: 100, 1: 100}
    assert found.pending == 4


def test_a_model_without_a_figure_does_not_spoil_the_others() -> None:
    llm = model(name="llm", rps=3.0, hit_rate=None, mean_batch=None)
    assert totals(sample(servers=(server(model(**FULL), llm),))).hit_rate == 87.5


def test_a_sum_without_one_of_its_parts_is_none() -> None:
    reset = model(name="new", rps=None, hit_rate=None, error_percent=None, gap="reset: its counters fell")
    found = totals(sample(servers=(server(model(**FULL), reset),)))
    assert found.rps is None
    assert found.error_percent is None
    assert found.why["rps"] == "reset: its counters fell"


def test_ensembles_count_beside_the_models_they_are_made_of() -> None:
    ensemble = model(name="pipeline", scheduling="ensemble", rps=800.0)
    one = sample(servers=(server(model(**FULL), ensemble),))
    assert totals(one).rps == 800.0
    assert totals(one, ModelKey("triton", "pipeline", "1")).rps == 800.0


def test_every_none_has_its_reason() -> None:
    reasons = {"/servers/0/models/0/hit_rate": "no traffic in this window"}
    quiet = ModelSample("echo", "1", "READY", rps=0.0)
    found = totals(
        sample(servers=(server(quiet),), gpus=(), unavailable=reasons | {"/gpus": "no driver is loaded"})
    )
    assert found.why["hit_rate"] == "no traffic in this window"
    assert found.why["dram_percent"] == "no driver is loaded"
    for field in dataclasses.fields(found):
        if getattr(found, field.name) is None:
            assert found.why[field.name]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"servers": ()}, "no Triton server was found on this droplet"),
        (
            {"servers": (dataclasses.replace(server(), state="stopped", reason="the unit is inactive"),)},
            "Triton server triton is stopped: the unit is inactive",
        ),
        ({"servers": (server(),)}, "no model is ready"),
    ],
)
def test_where_nothing_serves_that_is_the_reason(changed: dict[str, object], reason: str) -> None:
    one = dataclasses.replace(sample(), **changed)  # type: ignore[arg-type]
    assert totals(one).why["rps"] == reason


def test_gpus_are_summed_and_lost_ones_left_out() -> None:
    lost = GpuSample(index=1, uuid="GPU-1", state="lost", state_reason="off the bus")
    found = totals(sample(gpus=(gpu(0, dram_percent=80.0), lost, gpu(2, dram_percent=20.0, temperature_c=71))))
    assert found.dram_percent == 50.0
    assert found.dram_gb_s == 2 * 2095.0
    assert found.temperature_c == 71
    assert found.memory_percent == pytest.approx(100 * 61 / 80)
    alone = totals(sample(gpus=(lost,)))
    assert alone.dram_percent is None
    assert alone.why["dram_percent"] == "GPU 1 is lost: off the bus"


def test_mig_devices_do_not_count_memory_twice() -> None:
    part = gpu(1, uuid="MIG-1", mig=True, parent="GPU-0", memory_used=10 * GIB, memory_total=10 * GIB)
    assert totals(sample(gpus=(gpu(0), part))).memory_percent == pytest.approx(100 * 61 / 80)


def test_a_whole_server_is_a_choice_of_its_own() -> None:
    both = sample(servers=(server(model(**FULL)), dataclasses.replace(server(model(**ALONE)), name="b")))
    assert totals(both).rps == 900.0
    assert totals(both, ModelKey("b", "", "")).rps == 100.0
    assert totals(both, ModelKey("b", "echo", "1")).rps is None
    assert keys(both) == [ModelKey("triton", "echo", "1"), ModelKey("b", "alone", "1")]
    found = find(both, ModelKey("b", "alone", "1"))
    assert found is not None
    assert found[1] == "/servers/1/models/0"
