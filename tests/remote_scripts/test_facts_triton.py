from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from remote_scripts.facts_parts import facts_repository, facts_triton
from remote_scripts.facts_parts.facts_redact import redacted
from tests.remote_scripts.facts_lab import Pretended

ANSWERS = Path(__file__).parents[1] / "data" / "triton"
CONFIG = 'name: "echo"\nmax_batch_size: 8\n'


@pytest.fixture
def droplet(tmp_path: Path) -> Pretended:
    return Pretended(tmp_path)


class Captured(BaseHTTPRequestHandler):
    """Answers as the real server did (tests/data/triton)."""

    folder = "idle"

    def do_GET(self) -> None:
        if self.path.startswith("/v2/health/"):
            self.reply(200, b"")
        else:
            self.reply(200, (ANSWERS / self.folder / "server.json").read_bytes())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.reply(200, (ANSWERS / self.folder / "index.json").read_bytes())

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        return


@pytest.fixture
def port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Captured)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def running(
    droplet: Pretended, *flags: str, pid: int = 77, cgroup: str = "0::/system.slice/triton.service\n"
) -> None:
    """A tritonserver in the pretended droplet's /proc."""
    words = ["/opt/tritonserver/bin/tritonserver", *flags]
    droplet.file(f"/proc/{pid}/cmdline", "\0".join(words) + "\0")
    droplet.file(f"/proc/{pid}/comm", "tritonserver\n")
    droplet.file(f"/proc/{pid}/stat", f"{pid} (tritonserver) S 1 " + "0 " * 17 + "500 " + "0 " * 30)
    droplet.file(f"/proc/{pid}/cgroup", cgroup)
    droplet.link(f"/proc/{pid}/cwd", "/srv")
    droplet.file("/proc/net/tcp", "")


def test_a_server_with_its_models_states_and_configs(droplet: Pretended, port: int) -> None:
    running(droplet, "--model-repository=/models", f"--http-port={port}", "--http-address", "127.0.0.1")
    droplet.file("/models/echo/config.pbtxt", CONFIG)
    droplet.file("/models/echo/1/model.py", "")
    droplet.file("/models/echo/01/model.py", "")
    droplet.file("/models/echo/warmup/x", "")
    droplet.file("/models/lost/1/config.pbtxt", "")
    droplet.file("/models/README", "")
    (server,), missing = droplet.read(facts_triton.read, "triton")
    assert server["name"] == "triton"
    assert (server["how"], server["unit"], server["pid"]) == ("unit", "triton.service", 77)
    assert (server["live"], server["ready"], server["version"]) == (True, True, "2.51.0")
    assert server["repositories"] == [
        {"path": "/models", "kind": "local", "writable": True, "host_path": "/models"}
    ]
    models = {model["name"]: model for model in server["models"]}
    echo = models["echo"]
    assert echo["config"] == CONFIG
    assert echo["versions"] == ["1"]
    assert echo["config_file"] == "config.pbtxt"
    assert echo["states"] == [{"version": "1", "state": "READY"}]
    assert models["lost"]["misplaced"] == ["1/config.pbtxt"]
    assert models["lost"]["config_reason"].startswith("there is no config.pbtxt")
    known = {model["name"] for model in json.loads((ANSWERS / "idle" / "index.json").read_text(encoding="utf-8"))}
    assert set(models) == known | {"echo", "lost"}
    assert missing == {}


def test_a_server_that_starts_is_described_by_what_is_on_disk(droplet: Pretended) -> None:
    running(droplet, "--model-repository", "models", "--http-port=1", "--model-config-name=fast")
    droplet.file("/srv/models/m/configs/fast.pbtxt", "fast")
    droplet.file("/srv/models/m/config.pbtxt", "slow")
    (server,), missing = droplet.read(facts_triton.read, "triton")
    assert "ready" not in server
    assert missing["/triton/0/ready"] == "connection refused"
    assert server["repositories"][0]["host_path"] == "/srv/models"
    (model,) = server["models"]
    assert (model["config_file"], model["config"]) == ("configs/fast.pbtxt", "fast")


@pytest.mark.parametrize(("path", "kind"), [("s3://bucket/m", "s3"), ("gs://b/m", "gs"), ("as://a/b", "as")])
def test_a_repository_in_a_bucket_is_read_only_and_says_so(droplet: Pretended, path: str, kind: str) -> None:
    running(droplet, f"--model-repository={path}", "--http-port=1")
    (server,), _ = droplet.read(facts_triton.read, "triton")
    (repository,) = server["repositories"]
    assert (repository["kind"], repository["writable"]) == (kind, False)
    assert "read-only" in repository["reason"]
    assert server["models"] == []


def test_a_container_repository_is_found_on_the_droplet_by_its_mount(droplet: Pretended) -> None:
    container = "cd" * 32
    running(
        droplet,
        "--model-store=/models/live",
        "--http-port=1",
        cgroup=f"0::/system.slice/docker-{container}.scope\n",
    )
    droplet.file("/data/repo/live/m/config.pbtxt", "in the mount")
    (droplet.root / "rootfs").mkdir()
    droplet.file("/rootfs/models/live/m/config.pbtxt", "in the mount")
    droplet.link("/proc/77/root", str(droplet.root / "rootfs"))
    store = f"/var/lib/docker/containers/{container}"
    mounts = {
        "/models": {"Destination": "/models", "Source": "/data/repo"},
        "/x": {"Destination": "/x", "Source": ""},
    }
    config = {"ID": container, "Name": "/tri", "State": {"Running": True}, "MountPoints": mounts}
    droplet.file(f"{store}/config.v2.json", json.dumps(config))
    droplet.file(f"{store}/hostconfig.json", "{}")
    (server,), _ = droplet.read(facts_triton.read, "triton")
    assert (server["how"], server["container"]) == ("docker", "tri")
    assert server["repositories"][0]["host_path"] == "/data/repo/live"
    assert server["repositories"][0]["writable"] is True
    assert server["models"][0]["config"] == "in the mount"

    config["MountPoints"] = {}
    droplet.file(f"{store}/config.v2.json", json.dumps(config))
    (server,), _ = droplet.read(facts_triton.read, "triton")
    assert server["repositories"][0]["writable"] is False
    assert "inside the container" in server["repositories"][0]["reason"]


def test_two_repositories_with_a_model_of_one_name(droplet: Pretended) -> None:
    running(droplet, "--model-repository=/a", "--model-repository=/b", "--model-repository=/none", "--http-port=1")
    droplet.file("/a/m/config.pbtxt", "a")
    droplet.file("/b/m/config.pbtxt", "b")
    (server,), missing = droplet.read(facts_triton.read, "triton")
    (model,) = server["models"]
    assert (model["repository"], model["also_in"], model["config"]) == (0, [1], "a")
    assert missing["/triton/0/repositories/2/models"] == "/none cannot be read: No such file or directory"


def test_configs_that_are_no_text_or_too_long_say_so(droplet: Pretended) -> None:
    running(droplet, "--model-repository=/m", "--http-port=1")
    droplet.file("/m/bytes/config.pbtxt", b"name: \xff")
    droplet.file("/m/long/config.pbtxt", "#" * (facts_repository.CONFIG_LIMIT + 1))
    (droplet.root / "m/pipe").mkdir()
    os.mkfifo(droplet.root / "m/pipe/config.pbtxt")
    (server,), _ = droplet.read(facts_triton.read, "triton")
    reasons = {model["name"]: model["config_reason"] for model in server["models"]}
    assert reasons["bytes"] == "config.pbtxt is not UTF-8: byte 0xff at 6"
    assert "longer than 128 KiB" in reasons["long"]
    assert "no plain file" in reasons["pipe"]
    assert not any("config" in model for model in server["models"])


def test_all_configs_together_are_bounded(droplet: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_repository, "_CONFIGS_LIMIT", 1000)
    running(droplet, "--model-repository=/m", "--http-port=1")
    for number in range(5):
        droplet.file(f"/m/m{number}/config.pbtxt", "#" * 400)
    (server,), missing = droplet.read(facts_triton.read, "triton")
    assert sum("config" in model for model in server["models"]) == 2
    assert all("config_sha256" in model for model in server["models"])
    assert missing["/triton/0/models"].startswith("3 configs or models are left out")


def test_secrets_stay_on_the_droplet() -> None:
    words = [
        "tritonserver",
        "--http-restricted-api=model-repository,statistics:admin-key=hunter2",
        "--grpc-restricted-protocol",
        "health:k=hunter2",
        "--cache-config=redis,password=hunter2,host=h",
        "--cache-config=redis,host=redis://u:hunter2@h:6379",
        "--backend-config=x,api_key=hunter2",
        "--some=hf_hunter2hunter2",
        "--model-repository=/models",
        "--http-restricted-api=garbage-hunter2",
        "--log-verbose=1",
    ]
    shown = redacted(words)
    assert not any("hunter2" in word for word in shown)
    assert shown[1] == "--http-restricted-api=model-repository,statistics:admin-key=***"
    assert shown[2:4] == ["--grpc-restricted-protocol", "health:k=***"]
    assert shown[4] == "--cache-config=redis,password=***,host=h"
    assert shown[8] == "--model-repository=/models"
    assert shown[10] == "--log-verbose=1"
