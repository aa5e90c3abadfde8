"""A server's command line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """How one server is started; the defaults are a lab server with everything on and no model loaded."""

    http: int = 8000
    grpc: int = 8001
    metrics: int | None = 8002
    """Port of the metrics; None starts the server without them."""
    address: str = "0.0.0.0"
    repository: str = "/models"
    control: str = "explicit"
    """--model-control-mode: none, poll or explicit."""
    poll_s: int = 1
    load: tuple[str, ...] = ()
    """Models to load at the start, in explicit mode."""
    exit_on_error: bool = True
    strict_readiness: bool = True
    exit_timeout_s: int = 30
    summaries: bool = False
    """Latency summaries, from which a p95 comes; off in Triton unless asked for."""
    cache_bytes: int = 0
    """Size of the local response cache; 0 leaves it out."""
    restricted: tuple[str, ...] = ()
    """Categories of the HTTP API that want the header ``lab-key: secret``, such as statistics."""
    extra: tuple[str, ...] = ()
    """More flags, as they are."""

    def argv(self, home: str = "/opt/tritonserver") -> list[str]:
        """The command that starts it, with the server laid out at ``home``."""
        flags = [
            f"{home}/bin/tritonserver",
            f"--model-repository={self.repository}",
            f"--backend-directory={home}/backends",
            f"--cache-directory={home}/caches",
            f"--http-address={self.address}",
            f"--http-port={self.http}",
            f"--grpc-address={self.address}",
            f"--grpc-port={self.grpc}",
            f"--model-control-mode={self.control}",
            f"--exit-on-error={_flag(self.exit_on_error)}",
            f"--strict-readiness={_flag(self.strict_readiness)}",
            f"--exit-timeout-secs={self.exit_timeout_s}",
        ]
        flags += ["--allow-metrics=false"] if self.metrics is None else [f"--metrics-port={self.metrics}"]
        if self.control == "poll":
            flags.append(f"--repository-poll-secs={self.poll_s}")
        flags += [f"--load-model={model}" for model in self.load]
        if self.summaries:
            flags.append("--metrics-config=summary_latencies=true")
        if self.cache_bytes:
            flags.append(f"--cache-config=local,size={self.cache_bytes}")
        if self.restricted:
            flags.append(f"--http-restricted-api={','.join(self.restricted)}:lab-key=secret")
        return [*flags, *self.extra]


def _flag(value: bool) -> str:
    return "true" if value else "false"
