from __future__ import annotations

from console.domain.telemetry import resets
from console.domain.telemetry.batching import NO_TRAFFIC
from tests.unit.telemetry_fake import CONFIG, FakeDroplet, FakeModel, Watched, model_of, watch


def test_sums_leave_ensembles_out() -> None:
    echo, other, ensemble = FakeModel(), FakeModel(), FakeModel({**CONFIG, "scheduling": "ensemble"})
    watched = watch(echo=echo, other=other, pipeline=ensemble)
    echo.execute(1, 1)
    other.execute(1)
    other.execute_failing(1)
    ensemble.execute(1)
    server = watched.tick().servers[0]
    assert server.rps == 4.0
    assert server.error_percent == 25.0
    assert (server.models_ready, server.models_total) == (3, 3)


def test_a_sum_without_one_of_its_parts_is_none() -> None:
    watched = watch(echo=FakeModel(), other=FakeModel())
    watched.droplet.models["late"] = FakeModel()
    sample = watched.tick()
    assert sample.servers[0].rps is None
    assert sample.unavailable["/servers/0/rps"].startswith("late: ")
    assert watched.tick().servers[0].rps == 0.0


def test_models_that_are_not_ready_are_counted_and_not_summed() -> None:
    broken = FakeModel(state="UNAVAILABLE", more={"reason": "load failed"})
    watched = watch(echo=FakeModel(), broken=broken)
    sample = watched.tick()
    server = sample.servers[0]
    assert (server.models_ready, server.models_total, server.rps) == (1, 2, 0.0)
    assert sample.unavailable["/servers/0/error_percent"] == NO_TRAFFIC


def test_a_server_without_a_ready_model_has_no_sum() -> None:
    sample = watch(broken=FakeModel(state="LOADING")).tick()
    assert sample.unavailable["/servers/0/rps"] == "no model is ready"


def test_another_process_is_a_restart() -> None:
    model = FakeModel()
    model.execute(1)
    watched = watch(echo=model)
    model.restart()
    for _ in range(100):
        model.execute(1)
    watched.droplet.server["pid"] = 78
    assert watched.model().gap == resets.RESTARTED
    model.execute(1)
    assert watched.model().rps == 1.0


def test_a_restart_that_took_a_while_is_one_too() -> None:
    model = FakeModel()
    model.execute(1)
    watched = watch(echo=model)
    models, watched.droplet.models = watched.droplet.models, {}
    watched.droplet.server = {"how": "unit", "state": "restarting"}
    assert watched.tick().servers[0].state == "restarting"
    model.restart()
    for _ in range(100):
        model.execute(1)
    watched.droplet.models = models
    watched.droplet.server = {"how": "unit", "state": "ready", "pid": 99}
    assert watched.model().gap == resets.RESTARTED


def test_a_server_that_does_not_answer_for_a_tick_costs_no_request() -> None:
    model = FakeModel()
    watched = watch(echo=model)
    model.execute(1)
    line = watched.droplet.line()
    line["doc"]["servers"] = {"triton": {"state": "unreachable", "models": None}}
    sample = watched.builder.feed(line, arrived=0.0, stream="one")
    assert sample is not None
    assert sample.servers[0].models == ()
    watched.droplet.sent = None
    model.execute(1)
    assert watched.model().rps == 1.0, "two requests in the two seconds since it last answered"


def test_one_more_restart_by_the_unit_s_own_count_is_a_restart() -> None:
    watched = Watched(
        FakeDroplet(models={"echo": FakeModel()}, server={"how": "docker", "state": "ready", "restarts": 1})
    )
    watched.tick()
    watched.droplet.server["restarts"] = 2
    assert watched.model().gap == resets.RESTARTED


def test_a_start_time_that_moves_with_the_wall_clock_is_no_restart_while_the_process_is_the_same() -> None:
    model = FakeModel()
    watched = Watched(
        FakeDroplet(models={"echo": model}, server={"how": "unit", "state": "ready", "pid": 7, "started": 1000.0})
    )
    watched.tick()
    watched.droplet.server["started"] = 5000.0
    model.execute(1)
    assert watched.model().rps == 1.0


def test_a_start_time_tells_where_no_process_id_is_known() -> None:
    watched = Watched(
        FakeDroplet(models={"echo": FakeModel()}, server={"how": "process", "state": "ready", "started": 1000.0})
    )
    watched.tick()
    watched.droplet.server["started"] = 1000.5
    assert watched.model().gap is None
    watched.droplet.server["started"] = 1010.0
    assert watched.model().gap == resets.RESTARTED


def test_a_dead_server_says_so_for_everything() -> None:
    watched = Watched(FakeDroplet(server={"how": "unit", "state": "dead", "reason": "its unit failed: signal 11"}))
    line = watched.droplet.line()
    del line["doc"]["servers"]["triton"]["models"]
    sample = watched.builder.feed(line, arrived=0.0, stream="one")
    assert sample is not None
    assert sample.servers[0].models == ()
    for figure in ("pid", "rps", "models_ready", "version"):
        assert sample.unavailable[f"/servers/0/{figure}"] == "the server is dead: its unit failed: signal 11"


def test_servers_and_models_stand_in_order_and_versions_by_number() -> None:
    watched = Watched(FakeDroplet())
    line = watched.droplet.line()
    branch = FakeModel().branch()
    line["doc"]["servers"] = {
        "b": {"state": "ready", "models": {"m": {"10": branch, "9": branch, "-": {"state": "UNKNOWN"}}}},
        "a": {"state": "ready", "models": {"z": {"1": branch}, "a": {"1": branch}}},
    }
    sample = watched.builder.feed(line, arrived=0.0, stream="one")
    assert sample is not None
    assert [server.name for server in sample.servers] == ["a", "b"]
    assert [model.name for model in sample.servers[0].models] == ["a", "z"]
    assert [model.version for model in sample.servers[1].models] == ["9", "10", "-"]


def test_names_are_printable_and_their_reasons_found_all_the_same() -> None:
    name = "evil/\x1b[2J~model"
    watched = Watched(FakeDroplet(models={name: FakeModel()}))
    watched.droplet.unavailable[f"/servers/triton/models/{name.replace('~', '~0').replace('/', '~1')}/1/p95_us"] = (
        "summaries are \x1b[31moff"
    )
    sample = watched.tick()
    model = model_of(sample, "evil/\\x1b[2J~model")
    assert model.requests == 0
    assert sample.unavailable["/servers/0/models/0/p95_ms"] == "summaries are \\x1b[31moff"


def test_the_control_mode_comes_from_the_command_line_or_has_a_reason() -> None:
    watched = watch(echo=FakeModel())
    watched.droplet.server["control_mode"] = "explicit"
    assert watched.tick().servers[0].control_mode == "explicit"
    sample = watch(echo=FakeModel()).tick()
    assert sample.servers[0].control_mode is None
    assert sample.unavailable["/servers/0/control_mode"] == "the server's command line could not be read"
