from __future__ import annotations

import io
import json
import threading
import time
from pathlib import Path

import pytest

from remote_scripts import children
from remote_scripts.call import MAX_LINE, Call, LineTooLong
from tests.contract.living import long_sleep, sleepers, wait_for


def make(**more: object) -> tuple[Call, io.BytesIO]:
    sink = io.BytesIO()
    return Call({}, sink, **more), sink  # type: ignore[arg-type]


def test_an_answer_is_one_line_of_ascii_json() -> None:
    call, sink = make()
    answer = {"text": "a\nb\x1b\0é☃\ud800", "n": 1.5}
    assert call.emit(answer) == len(sink.getvalue())
    assert sink.getvalue().isascii()
    assert sink.getvalue().count(b"\n") == 1
    assert json.loads(sink.getvalue()) == answer


def test_an_answer_that_does_not_fit_is_not_sent() -> None:
    call, sink = make()
    with pytest.raises(LineTooLong):
        call.emit("x" * MAX_LINE)
    with pytest.raises(ValueError, match="JSON"):
        call.emit(float("nan"))
    assert sink.getvalue() == b""


def test_files_are_looked_up_under_the_root(tmp_path: Path) -> None:
    call, _ = make(root=tmp_path)
    assert call.resolve("/etc/os-release") == tmp_path / "etc/os-release"
    assert call.resolve("/../../etc//x/../y") == tmp_path / "etc/y"
    assert call.resolve("/") == tmp_path
    assert make()[0].resolve("/etc/x") == Path("/etc/x")


def test_tools_are_found_in_the_given_path_only(tmp_path: Path) -> None:
    tool = tmp_path / "mytool"
    tool.write_text("#!/bin/sh\necho $LC_ALL $PATH\n")
    call, _ = make(path=(str(tmp_path), "relative"))
    assert call.tool("mytool") is None  # not executable
    tool.chmod(0o755)
    assert call.tool("mytool") == str(tool)
    assert call.tool("sh") is None
    with pytest.raises(ValueError, match="plain name"):
        call.tool("../sh")
    assert call.run(["mytool"], 10).text == f"C {tmp_path}:relative\n"
    with pytest.raises(FileNotFoundError, match="sh: not found"):
        call.run(["sh"], 10)


def test_a_tool_is_fed_and_both_outputs_are_bounded() -> None:
    call, _ = make()
    done = call.run(["sh", "-c", "tee /dev/stderr; exit 3"], 20, b"x" * 3_000_000, limit=1000)
    assert (done.status, len(done.stdout), len(done.stderr), done.truncated) == (3, 1000, 1000, True)
    assert not done.ok
    assert call.run(["true"], 20, b"x" * 3_000_000).ok


def test_a_tool_out_of_time_is_killed_with_its_group() -> None:
    call, _ = make()
    seconds = long_sleep()
    began = time.monotonic()
    done = call.run(["sh", "-c", f"trap '' TERM; sleep {seconds} & sleep {seconds}; :"], 0.5)
    assert done.timed_out
    assert not done.ok
    assert time.monotonic() - began < 10
    wait_for(seconds, 0)


def test_a_tool_that_closes_its_outputs_is_still_waited_for() -> None:
    call, _ = make()
    assert call.run(["sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4"], 20).status == 4
    assert call.run(["sh", "-c", "exec >&- 2>&-; sleep 60"], 0.3).timed_out


def test_all_tools_can_be_ended_at_once() -> None:
    call, _ = make()
    seconds = long_sleep()
    stubborn = ["sh", "-c", f"trap '' TERM; sleep {seconds}; sleep {seconds}; :"]
    threads = [threading.Thread(target=call.run, args=(command, 600)) for command in (["sleep", seconds], stubborn)]
    for thread in threads:
        thread.start()
    wait_for(seconds, 2)
    children.end_all(grace=0.3)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert sleepers(seconds) == []


def test_lines_of_several_threads_do_not_mix(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as sink:
        call = Call({}, sink)
        threads = [threading.Thread(target=lambda: [call.emit("x" * 5000) for _ in range(50)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = (tmp_path / "out").read_bytes().splitlines()
    assert len(lines) == 400
    assert set(map(len, lines)) == {5002}
