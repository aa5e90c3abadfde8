"""What a tritonserver's own command line says about where and how it serves.

Flags and defaults: server/src/command_line_parser.cc. Only what is named here is kept: a command line may hold
secrets (``--http-restricted-api=…:header=secret``), and they stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_OFF = {"false", "0", "off", "no"}
_ON = {"true", "1", "on", "yes"}
_RESTRICTED = "http-restricted-api"
_FLAGS = {
    _RESTRICTED,
    "http-port",
    "http-address",
    "grpc-port",
    "grpc-address",
    "metrics-port",
    "metrics-address",
    "allow-http",
    "allow-grpc",
    "allow-metrics",
    "model-control-mode",
    "exit-timeout-secs",
    "strict-readiness",
}


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags in force, defaults filled in.

    Attributes:
        http_port: None where the endpoint is off; likewise the other ports.
        http_address: as given, "0.0.0.0" by default; ``metrics_address`` follows it.
        restricted: the HTTP API categories that want a header ("statistics", ...); never the header or its value.
    """

    http_port: int | None = 8000
    grpc_port: int | None = 8001
    metrics_port: int | None = 8002
    http_address: str = "0.0.0.0"  # noqa: S104 - Triton's default
    grpc_address: str = "0.0.0.0"  # noqa: S104 - likewise
    metrics_address: str = "0.0.0.0"  # noqa: S104 - likewise
    control_mode: str = "none"
    exit_timeout_s: int = 30
    strict_readiness: bool = True
    restricted: tuple[str, ...] = ()


def is_triton(argv: Sequence[str]) -> bool:
    """Whether an argument list starts a Triton server."""
    return bool(argv) and argv[0].rsplit("/", 1)[-1] == "tritonserver"


def read_flags(argv: Sequence[str]) -> Flags:
    """The flags of a command line, in both spellings (``--flag=value``, ``--flag value``); the last one holds.

    A value that is no number where one belongs leaves the default: such a server does not start.
    """
    given, restricted = _collect(argv)
    http = _port(given.get("http-port"), 8000) if _truth(given.get("allow-http"), True) else None
    http_address = given.get("http-address") or "0.0.0.0"  # noqa: S104 - Triton's default
    metrics_default = http_address if http is not None else "0.0.0.0"  # noqa: S104 - likewise
    timeout = given.get("exit-timeout-secs", "")
    return Flags(
        http_port=http,
        grpc_port=_port(given.get("grpc-port"), 8001) if _truth(given.get("allow-grpc"), True) else None,
        metrics_port=_port(given.get("metrics-port"), 8002) if _truth(given.get("allow-metrics"), True) else None,
        http_address=http_address,
        grpc_address=given.get("grpc-address") or "0.0.0.0",  # noqa: S104 - likewise
        metrics_address=given.get("metrics-address") or metrics_default,
        control_mode=given.get("model-control-mode") or "none",
        exit_timeout_s=int(timeout) if timeout.isascii() and timeout.isdigit() and len(timeout) < 10 else 30,
        strict_readiness=_truth(given.get("strict-readiness"), True),
        restricted=tuple(sorted(restricted)),
    )


def _collect(argv: Sequence[str]) -> tuple[dict[str, str], set[str]]:
    given: dict[str, str] = {}
    restricted: set[str] = set()
    words = iter(argv[1:])
    for word in words:
        if not word.startswith("--") or word == "--":
            continue
        spelled, equals, value = word[2:].partition("=")
        name = _full_name(spelled)
        if name is None:
            continue
        if not equals:
            value = next(words, "")
        if name == _RESTRICTED:
            restricted.update(part.strip() for part in value.partition(":")[0].split(",") if part.strip())
        else:
            given[name] = value.strip()
    return given, restricted


def _full_name(spelled: str) -> str | None:
    """getopt_long takes any prefix that only one flag has; a server that runs was given no other."""
    if spelled in _FLAGS or len(spelled) < 5:
        return spelled if spelled in _FLAGS else None
    found = [flag for flag in _FLAGS if flag.startswith(spelled)]
    return found[0] if len(found) == 1 else None


def _truth(value: str | None, default: bool) -> bool:
    """Triton's booleans; a flag without a value is true."""
    if value is None:
        return default
    lowered = value.lower()
    if lowered in _OFF:
        return False
    return True if lowered in _ON or not lowered else default


def _port(value: str | None, default: int) -> int:
    if value is None or not (value.isascii() and value.isdigit()) or len(value) > 5:
        return default
    return int(value) if 0 < int(value) < 65536 else default
