from __future__ import annotations

import dataclasses

import pytest

from remote_scripts.triton.flags import Flags, is_triton, read_flags


def flags(*words: str) -> Flags:
    return read_flags(["/opt/tritonserver/bin/tritonserver", "--model-repository=/models", *words])


def test_the_defaults_are_tritons() -> None:
    assert flags() == Flags()


@pytest.mark.parametrize(
    "words",
    [
        ("--http-port=8100",),
        ("--http-port", "8100"),
        ("--http-port=1", "--http-port=8100"),
        ("--model-repository", "--x", "--http-port", "8100"),
        ("--http-p", "8100"),
    ],
)
def test_both_spellings_and_the_last_one_holds(words: tuple[str, ...]) -> None:
    assert flags(*words).http_port == 8100


def test_the_metrics_follow_the_http_address() -> None:
    assert flags("--http-address=127.0.0.1").metrics_address == "127.0.0.1"
    assert flags("--http-address=127.0.0.1", "--metrics-address=0.0.0.0").metrics_address == "0.0.0.0"
    assert flags("--http-address=127.0.0.1", "--allow-http=false").metrics_address == "0.0.0.0"


@pytest.mark.parametrize("off", ["false", "False", "0"])
def test_an_endpoint_that_is_off_has_no_port(off: str) -> None:
    found = flags(f"--allow-http={off}", "--allow-grpc", off, f"--allow-metrics={off}")
    assert (found.http_port, found.grpc_port, found.metrics_port) == (None, None, None)


def test_the_rest() -> None:
    found = flags("--model-control-mode=explicit", "--exit-timeout-secs=5", "--strict-readiness=false")
    assert (found.control_mode, found.exit_timeout_s, found.strict_readiness) == ("explicit", 5, False)


def test_secrets_are_not_kept() -> None:
    found = flags(
        "--http-restricted-api=health,statistics:admin-key=hunter2", "--http-restricted-api", "trace:k=topsecret"
    )
    assert found.restricted == ("health", "statistics", "trace")
    assert "hunter2" not in repr(dataclasses.asdict(found))
    assert "secret" not in repr(dataclasses.asdict(found))


@pytest.mark.parametrize("port", ["", "x", "-1", "0", "65536", "999999999999", "٨"])
def test_a_port_that_is_none_leaves_the_default(port: str) -> None:
    assert flags(f"--http-port={port}").http_port == 8000


def test_a_flag_at_the_end_without_its_value() -> None:
    assert flags("--http-port").http_port == 8000


def test_what_is_a_server() -> None:
    assert is_triton(["tritonserver"])
    assert is_triton(["/opt/tritonserver/bin/tritonserver", "--help"])
    assert not is_triton(["/bin/sh", "-c", "tritonserver"])
    assert not is_triton([])
