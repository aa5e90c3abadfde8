"""Remote scripts over every transport: how they start, answer, fail and end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from console.remote.errors import FailureKind, RemoteError
from console.remote.local import LocalTransport
from console.remote.scripts import bundle
from console.remote.scripts import running as scripts
from console.remote.scripts.running import open_script, run_script
from console.remote.transport import Process, Transport
from tests.contract.living import long_sleep, sleepers, wait_for

PYENV = Path.home() / ".pyenv" / "versions"
"""Where other Pythons may be on this machine."""

SCRIPT = """
import os, subprocess, sys, time

def main(call):
    what = call.request.get("do")
    if what == "echo":
        call.emit({"request": dict(call.request), "root": str(call.root), "path": list(call.path)})
    elif what == "big":
        for n in range(call.request["lines"]):
            call.emit({"n": n, "text": os.urandom(call.request["size"] // 2).hex()})
    elif what == "fail":
        call.emit({"first": 1})
        raise LookupError("it is \\x1b[31mnot\\nthere")
    elif what == "exit":
        sys.stderr.write("last words\\n")
        sys.exit(call.request["status"])
    elif what == "die":
        os.kill(os.getpid(), 9)
    elif what == "raw":
        call.sink.write(call.request["text"].encode("latin-1"))
        call.sink.flush()
    elif what == "children":
        subprocess.Popen(["sleep", call.request["sleep"]])
        subprocess.Popen(["sh", "-c", "trap '' TERM; sleep " + call.request["sleep"] + "; :"])
        call.emit({"started": 1})
        call.run(["sleep", call.request["sleep"]], 600)
    elif what == "import":
        import pynvml
        call.emit({"pynvml": getattr(pynvml, "__file__", "memory"), "success": pynvml.NVML_SUCCESS})
"""


@cache
def with_probe() -> bundle.Bundle:
    """The program's own scripts, and one for the tests."""
    return bundle.Bundle({**bundle.bundle().contents, "remote_scripts/probe.py": SCRIPT.encode()})


@pytest.fixture(autouse=True)
def probe_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "bundle", with_probe)


@pytest.fixture
def root(transport: Transport) -> Iterator[str]:
    """A folder on the droplet to be taken for /: the scripts' cache lies in it."""
    made = transport.run(["mktemp", "-d", "/tmp/root-XXXXXX"], timeout=20)
    folder = made.stdout.decode().strip()
    yield folder
    if not transport.closed:
        transport.run(["rm", "-rf", folder], timeout=20)


def ask(transport: Transport, root: str, do: str, **more: object) -> dict[str, Any]:
    return run_script(transport, "probe", {"do": do, **more}, timeout=30, root=root)


def test_a_script_is_given_its_request_root_and_path(transport: Transport, root: str) -> None:
    request = {"do": "echo", "text": 'it\'s "quoted" \\ !\n\0é☃\x1b', "list": [1, 2.5, None]}
    answer = run_script(transport, "probe", request, timeout=30, root=root, path=["/opt/tools", "/usr/bin"])
    assert answer == {"request": request, "root": root, "path": ["/opt/tools", "/usr/bin"]}


def test_scripts_travel_once(transport: Transport, root: str) -> None:
    for _ in range(2):
        with open_script(transport, "probe", {"do": "echo"}, timeout=30, root=root) as stream:
            assert stream.hello.cached
            assert stream.hello.uid == 0
            assert stream.read(20)
            assert stream.read(20) is None
    listed = transport.run(["find", f"{root}/var/lib/droplet-console", "-printf", "%m %u %y\\n"], timeout=20)
    assert set(listed.stdout.decode().splitlines()) == {"700 root d", "600 root f"}


def test_pynvml_travels_along(transport: Transport, root: str) -> None:
    answer = ask(transport, root, "import")
    assert answer["pynvml"].startswith(root)


@pytest.mark.parametrize(("lines", "size"), [(1, 4_000_000), (2_000, 1_000)])
def test_long_answers_and_many(transport: Transport, root: str, lines: int, size: int) -> None:
    request = {"do": "big", "lines": lines, "size": size}
    with open_script(transport, "probe", request, timeout=30, root=root) as stream:
        for number in range(lines):
            answer = stream.read(30)
            assert answer is not None
            assert answer["n"] == number
            assert len(answer["text"]) == size
        assert stream.read(30) is None


def test_a_script_that_raises(transport: Transport, root: str) -> None:
    with open_script(transport, "probe", {"do": "fail"}, timeout=30, root=root) as stream:
        assert stream.read(20) == {"first": 1}
        with pytest.raises(RemoteError) as caught:
            stream.read(20)
    assert caught.value.kind is FailureKind.SCRIPT_FAILED
    text = str(caught.value)
    assert "LookupError: it is" in text
    assert "probe.py:13" in text
    assert "\x1b" not in text
    assert "\n" not in text


def test_a_script_that_ends_badly(transport: Transport, root: str) -> None:
    with pytest.raises(RemoteError, match=r"status 3.*last words") as caught:
        ask(transport, root, "exit", status=3)
    assert caught.value.kind is FailureKind.SCRIPT_FAILED
    with pytest.raises(RemoteError, match="signal KILL"):
        ask(transport, root, "die")


def test_a_script_that_does_not_exist(transport: Transport, root: str) -> None:
    with pytest.raises(RemoteError, match="No module named"):
        run_script(transport, "nosuch", {}, timeout=30, root=root)
    with pytest.raises(RemoteError, match="no name of a script"):
        run_script(transport, "../etc", {}, timeout=30, root=root)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json\n", "no JSON"),
        ("[1]\n", "no object"),
        ('{"a":NaN}\n', "no JSON"),
        ("[" * 100_000 + "\n", "no JSON"),
        ('{"half":', "within a line"),
        ("\xff\xfe\0\n", "no JSON"),
    ],
)
def test_what_is_no_line_of_json_is_a_failure(transport: Transport, root: str, text: str, words: str) -> None:
    with pytest.raises(RemoteError, match=words) as caught:
        ask(transport, root, "raw", text=text)
    assert caught.value.kind is FailureKind.SCRIPT_FAILED


def test_an_endless_line_is_cut_off(transport: Transport, root: str) -> None:
    request = {"do": "raw", "text": "x" * 5_000_000}
    with open_script(transport, "probe", request, timeout=30, root=root) as stream, pytest.raises(RemoteError) as e:
        stream.read(30)
    assert "more than" in str(e.value)


def end_by_closing(stream: scripts.ScriptStream, transport: Transport) -> None:
    stream.close()


def end_with_the_line(stream: scripts.ScriptStream, transport: Transport) -> None:
    transport.close()


@pytest.mark.parametrize("end", [end_by_closing, end_with_the_line])
def test_a_script_and_its_children_end_with_their_stream(
    transport: Transport, root: str, end: Callable[[scripts.ScriptStream, Transport], None]
) -> None:
    seconds = long_sleep()
    request = {"do": "children", "sleep": seconds}
    stream = open_script(transport, "probe", request, timeout=30, root=root)
    assert stream.read(20) == {"started": 1}
    wait_for(seconds, 3)
    end(stream, transport)
    wait_for(seconds, 0)


def test_a_script_out_of_time_is_ended(transport: Transport, root: str) -> None:
    seconds = long_sleep()
    with pytest.raises(RemoteError) as caught:
        run_script(
            transport, "probe", {"do": "children", "sleep": seconds}, timeout=2 + 4 * slow(transport), root=root
        )
    assert caught.value.kind in (FailureKind.COMMAND_TIMED_OUT, FailureKind.SCRIPT_FAILED)
    wait_for(seconds, 0)


def slow(transport: Transport) -> float:
    """Seconds that a command takes just now."""
    began = time.monotonic()
    transport.run(["true"], timeout=30)
    return time.monotonic() - began


def test_the_programs_own_scripts(transport: Transport, root: str) -> None:
    facts = run_script(transport, "facts", {}, timeout=60, root=root)
    assert facts["schema"] == "facts/1"
    with open_script(transport, "telemetry", {"interval": 0.1}, timeout=60, root=root) as stream:
        ticks = [stream.read(30) for _ in range(3)]
    assert [tick and tick["seq"] for tick in ticks] == [0, 1, 2]


# --- the cache


def unpacked(root: str) -> str:
    return f"{root}/var/lib/droplet-console/scripts/{with_probe().id}"


def shell(transport: Transport, script: str, *words: str) -> str:
    done = transport.run(["sh", "-euc", script, "sh", *words], timeout=30)
    assert done.exit_status == 0, done
    return done.stdout.decode()


SPOILED = {
    "a changed file": 'echo "import os; os._exit(99)" >>"$1/remote_scripts/probe.py"',
    "a file that is missing": 'rm "$1/remote_scripts/call.py"',
    "a manifest that agrees with a changed file": """
        echo "raise SystemExit(99)" >"$1/remote_scripts/probe.py"
        h=$(sha256sum <"$1/remote_scripts/probe.py" | cut -d' ' -f1)
        sed -i 's/\\("remote_scripts\\/probe.py",\\)[0-9]*,"[0-9a-f]*"/\\121,"'$h'"/' "$1/manifest"
        """,
    "a manifest that is no JSON": 'echo "{" >"$1/manifest"',
    "somebody else's file": 'chown 65534 "$1/remote_scripts/probe.py"',
    "a file that others may write": 'chmod 666 "$1/remote_scripts/probe.py"',
    "somebody else's folder": 'chown 65534 "$1"',
    "a folder that others may enter": 'chmod 777 "$1"',
    "a link in the folder's place": 'mv "$1" "$1.moved"; ln -s "$1.moved" "$1"',
    "a link in a file's place": 'mv "$1/pynvml.py" "$1.py"; ln -s "$1.py" "$1/pynvml.py"',
    "a file in the folder's place": 'rm -r "$1"; touch "$1"',
    "the versions' folder of somebody else": 'chown 65534 "$1/.."',
    "a link in the place of the versions' folder": 'd=$(dirname "$1"); mv "$d" "$d.moved"; ln -s "$d.moved" "$d"',
    "the base open to others": 'chmod 755 "$1/../.."',
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_cache_is_replaced(transport: Transport, root: str, how: str) -> None:
    ask(transport, root, "echo")
    shell(transport, SPOILED[how], unpacked(root))
    with open_script(transport, "probe", {"do": "echo"}, timeout=30, root=root) as stream:
        assert stream.hello.cached
        assert stream.read(20)
    found = shell(transport, 'stat -c "%U %a %F" "$1" "$1/.." "$1/../.." "$1/manifest"', unpacked(root))
    assert found.splitlines() == ["root 700 directory"] * 3 + ["root 600 regular file"]
    assert shell(transport, 'find "$1" ! -user root', unpacked(root)) == ""


def test_a_base_folder_of_somebody_else_is_left_alone(transport: Transport, root: str) -> None:
    shell(
        transport,
        'mkdir -p "$1/var/lib/droplet-console/changes"; chown -R 65534 "$1/var/lib/droplet-console"',
        root,
    )
    with open_script(transport, "probe", {"do": "echo"}, timeout=30, root=root) as stream:
        assert not stream.hello.cached
        assert "somebody else" in (stream.hello.uncached or "")
        assert stream.read(20)
    assert shell(transport, 'ls "$1/var/lib/droplet-console"', root) == "changes\n"


DISKS = {
    "read-only": 'mount -t tmpfs -o ro none "$1"',
    "full": 'mount -t tmpfs -o size=64k none "$1"',
    "without inodes": 'mount -t tmpfs -o nr_inodes=8 none "$1"',
}


@pytest.mark.parametrize("how", DISKS)
def test_a_disk_that_takes_nothing(transport: Transport, root: str, how: str) -> None:
    shell(transport, DISKS[how], root)
    try:
        for _ in range(2):
            with open_script(transport, "probe", {"do": "import"}, timeout=30, root=root) as stream:
                assert not stream.hello.cached
                assert stream.hello.uncached
                assert stream.read(20) == {"pynvml": "memory", "success": 0}
                assert stream.read(20) is None
            with pytest.raises(RemoteError, match=r"probe.py:13"):
                ask(transport, root, "fail")
        left = shell(transport, 'find "$1" -type f', root)
        assert left == ""
    finally:
        shell(transport, 'umount "$1"', root)


def test_the_last_two_versions_are_kept(transport: Transport, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = []
    for number in range(4):
        contents = {**bundle.bundle().contents, "remote_scripts/probe.py": f"{SCRIPT}# {number}\n".encode()}
        version = bundle.Bundle(contents)
        monkeypatch.setattr(scripts, "bundle", lambda version=version: version)
        ids.append(version.id)
        ask(transport, root, "echo")
    kept = shell(transport, 'ls -A "$1/var/lib/droplet-console/scripts"', root).split()
    assert sorted(kept) == sorted(ids[-2:])


# --- Pythons


def stand_in(folder: Path, name: str, program: str) -> None:
    """A program called ``name`` that becomes another one."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    (folder / name).chmod(0o755)


@pytest.fixture
def pythons(tmp_path: Path) -> Path:
    """A PATH without any Python; what a droplet needs besides is there."""
    folder = tmp_path / "bin"
    for tool in (
        "sh",
        "cat",
        "sleep",
        "env",
        "rm",
        "mkfifo",
        "dd",
        "printf",
        "uname",
        "cut",
        "tr",
        "sed",
        "date",
        "df",
        "ls",
    ):
        stand_in(folder, tool, f"/bin/{tool}" if Path(f"/bin/{tool}").exists() else f"/usr/bin/{tool}")
    return folder


class OtherPath:
    """A transport whose commands see another PATH."""

    def __init__(self, inner: Transport, path: Path) -> None:
        self._inner = inner
        self._path = path
        self.name = inner.name
        self.run = inner.run

    def open(self, command: list[str], *, timeout: float, guard: bool = True) -> Process:
        return self._inner.open(["/usr/bin/env", f"PATH={self._path}", *command], timeout=timeout, guard=guard)


@pytest.fixture
def elsewhere(local: Transport, pythons: Path) -> Transport:
    return OtherPath(local, pythons)  # type: ignore[return-value]


def old_python() -> str:
    """A real Python that is too old, if there is one."""
    for version in ("3.6", "3.7", "3.8", "3.9"):
        for found in sorted(PYENV.glob(f"{version}.*/bin/python3")):
            return str(found)
    return ""


def test_no_python_at_all(elsewhere: Transport, tmp_path: Path) -> None:
    with pytest.raises(RemoteError) as caught:
        run_script(elsewhere, "probe", {}, timeout=30, root=str(tmp_path))
    assert caught.value.kind is FailureKind.PYTHON_MISSING
    with open_script(elsewhere, "telemetry", {"interval": 0.2}, timeout=30) as stream:
        assert (stream.hello.python, stream.hello.cached) == (None, False)
        assert [(stream.read(20) or {})["seq"] for _ in range(2)] == [0, 1]
    assert run_script(elsewhere, "facts", {}, timeout=30)["schema"] == "facts/1"


def test_a_python_that_is_too_old(elsewhere: Transport, pythons: Path, tmp_path: Path) -> None:
    python = old_python()
    if not python:
        pytest.skip("no Python older than 3.10 on this machine")
    stand_in(pythons, "python3", python)
    with pytest.raises(RemoteError, match=r"its python3 is 3\.[6-9]\.") as caught:
        run_script(elsewhere, "probe", {}, timeout=30, root=str(tmp_path))
    assert caught.value.kind is FailureKind.PYTHON_MISSING
    assert run_script(elsewhere, "facts", {}, timeout=30)["schema"] == "facts/1"
    stand_in(pythons, "python3.12", "/usr/bin/python3")
    assert run_script(elsewhere, "probe", {"do": "echo"}, timeout=30, root=str(tmp_path))


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_every_python_that_is_supported(elsewhere: Transport, pythons: Path, tmp_path: Path, version: str) -> None:
    found = sorted(PYENV.glob(f"{version}.*/bin/python3"))
    if not found:
        pytest.skip(f"no Python {version} on this machine")
    stand_in(pythons, f"python{version}", str(found[0]))
    for _ in range(2):
        with open_script(elsewhere, "probe", {"do": "import"}, timeout=30, root=str(tmp_path)) as stream:
            assert (stream.hello.python or "").startswith(version)
            assert stream.read(20)
            assert stream.read(20) is None
    with open_script(elsewhere, "telemetry", {"interval": 0.2}, timeout=30, root=str(tmp_path)) as stream:
        assert [(stream.read(20) or {})["seq"] for _ in range(2)] == [0, 1]


def test_noise_before_the_mark_is_kept_for_the_diagnosis(
    elsewhere: Transport, pythons: Path, tmp_path: Path
) -> None:
    (pythons / "python3").write_text("#!/bin/sh\necho welcome; echo trouble >&2; exit 1\n")
    (pythons / "python3").chmod(0o755)
    with pytest.raises(RemoteError, match=r"did not start: welcome.*trouble"):
        run_script(elsewhere, "probe", {}, timeout=30, root=str(tmp_path))
    (pythons / "python3").write_text('#!/bin/sh\nprintf "hello \\377\\n\\nwarning: "; exec /usr/bin/python3 "$@"\n')
    assert run_script(elsewhere, "probe", {"do": "echo"}, timeout=30, root=str(tmp_path))


def test_a_python_that_is_broken(elsewhere: Transport, pythons: Path, tmp_path: Path) -> None:
    (pythons / "python3").write_text("#!/bin/sh\necho 'libpython3.11.so: no such file' >&2; exit 127\n")
    (pythons / "python3").chmod(0o755)
    with pytest.raises(RemoteError, match="did not start: libpython3"):
        run_script(elsewhere, "probe", {}, timeout=30, root=str(tmp_path))
    facts = run_script(elsewhere, "facts", {}, timeout=30)
    assert "its python3 does not start: libpython3.11.so" in facts["unavailable"][""]
    with open_script(elsewhere, "telemetry", {"interval": 0.2}, timeout=30) as stream:
        assert stream.hello.python is None
        assert stream.read(20)


def test_a_script_that_never_says_hello(elsewhere: Transport, pythons: Path, tmp_path: Path) -> None:
    seconds = long_sleep()
    (pythons / "python3").write_text(f"#!/bin/sh\ncat >/dev/null; kill $$; exec sleep {seconds}\n")
    (pythons / "python3").chmod(0o755)
    with pytest.raises(RemoteError) as caught:
        run_script(elsewhere, "probe", {}, timeout=1, root=str(tmp_path))
    assert caught.value.kind is FailureKind.COMMAND_TIMED_OUT
    assert sleepers(seconds) == []


def test_requests_of_other_scripts_never_stand_in_a_command_line(
    local: LocalTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[list[str]] = []
    open_ = local.open

    def spying(command: list[str], **more: Any) -> Process:
        opened.append(command)
        return open_(command, **more)

    monkeypatch.setattr(local, "open", spying)
    secret: Mapping[str, object] = {"do": "echo", "token": "s3cret-token"}
    assert run_script(local, "probe", secret, timeout=30, root=str(tmp_path))["request"] == secret
    assert "s3cret-token" not in json.dumps(opened)


def test_a_bundle_does_not_depend_on_the_order_of_its_files() -> None:
    one = bundle.Bundle({"b.py": b"2", "a.py": b"1"})
    other = bundle.Bundle({"a.py": b"1", "b.py": b"2"})
    assert one.id == other.id
    assert one.archive == other.archive
    assert one.id != bundle.Bundle({"a.py": b"1", "b.py": b"3"}).id


def test_the_boot_code_is_one_line() -> None:
    assert "\n" not in bundle.boot_line()
    assert len(bundle.boot_line()) < 16_384
