from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from remote_scripts.gpu.dcgm_exporter import DcgmExporter

# The exporter's own form: its labels and help lines, two A100, the second cut by MIG.
PAGE = """\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA A100"} 97
# HELP DCGM_FI_PROF_DRAM_ACTIVE Ratio of cycles the device memory interface is active sending or receiving data.
# TYPE DCGM_FI_PROF_DRAM_ACTIVE gauge
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA A100",Hostname="h"} 0.421371
DCGM_FI_PROF_DRAM_ACTIVE{gpu="1",UUID="GPU-b",device="nvidia1",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1"} 0.25
DCGM_FI_PROF_DRAM_ACTIVE{gpu="2",UUID="GPU-c",device="nvidia2"} 140737488355328.000000
DCGM_FI_PROF_DRAM_ACTIVE{gpu="3",UUID="GPU-d",device="nvidia3"} NaN
DCGM_FI_PROF_DRAM_ACTIVE{gpu="4",device="nvidia4"} 0.5
"""


class Exporter:
    def __init__(self) -> None:
        self.page = PAGE
        self.status = 200
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                body = outer.page.encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                return

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """A client that hangs up on a page that is too long is what is tested."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    server = Exporter()
    yield server
    server.close()


def test_ratios_become_percents_of_gpus_and_instances(exporter: Exporter) -> None:
    percents, reason = DcgmExporter(exporter.port).read(0.0)
    assert percents == {("GPU-a", ""): 42.137, ("GPU-b", "1"): 25.0}
    assert "does not export" in reason


def test_the_name_of_2026_is_known_too(exporter: Exporter) -> None:
    exporter.page = 'DCGM_FI_PROF_DRAM_UTIL_RATIO{UUID="GPU-a"} 1\n'
    assert DcgmExporter(exporter.port).read(0.0)[0] == {("GPU-a", ""): 100.0}


def test_it_is_read_every_five_seconds(exporter: Exporter) -> None:
    reader = DcgmExporter(exporter.port)
    for now in (0.0, 1.0, 4.9):
        reader.read(now)
    assert exporter.asked == 1
    exporter.page = PAGE.replace("0.421371", "0.5")
    assert reader.read(5.0)[0]["GPU-a", ""] == 50.0
    assert exporter.asked == 2


def test_an_exporter_that_goes_leaves_no_figure_behind(exporter: Exporter) -> None:
    reader = DcgmExporter(exporter.port)
    assert reader.read(0.0)[0]
    exporter.close()
    percents, reason = reader.read(6.0)
    assert percents == {}
    assert reason == "no DCGM exporter answers on port 9400"


def test_something_else_on_the_port_is_told(exporter: Exporter) -> None:
    exporter.status = 404
    assert "HTTP status 404" in DcgmExporter(exporter.port).read(0.0)[1]


@pytest.mark.parametrize("talk", [lambda peer: peer.close(), lambda peer: peer.sendall(b"SSH-2.0-x\r\n" * 9)])
def test_something_that_does_not_speak_http_is_told(talk: Callable[[socket.socket], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            talk(peer)

        threading.Thread(target=serve, daemon=True).start()
        percents, reason = DcgmExporter(listener.getsockname()[1]).read(0.0)
    assert percents == {}
    assert "no DCGM exporter" in reason


def test_one_that_never_answers_costs_a_third_of_a_second() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        percents, reason = DcgmExporter(listener.getsockname()[1]).read(0.0)
    assert percents == {}
    assert "no answer in time" in reason


def test_an_unbounded_page_is_refused(exporter: Exporter) -> None:
    exporter.page = PAGE + "# " + "x" * (9 << 20)
    percents, reason = DcgmExporter(exporter.port).read(0.0)
    assert percents == {}
    assert reason
