"""Running the remote scripts over a transport (docs/wire.md 1).

``run_script`` is for one answer, ``open_script`` for a stream.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from console.remote import sudo
from console.remote.errors import FailureKind, RemoteError
from console.remote.refusals import printable
from console.remote.scripts import launch_command
from console.remote.scripts.bundle import bundle
from console.remote.scripts.handshake import Greeting, Handshake
from console.remote.scripts.lines import LineReader
from console.remote.sudo import Privilege
from console.remote.transport import Process, Source, Transport

PUBLIC = frozenset({"facts", "telemetry"})
"""Scripts whose requests hold nothing secret: they may travel in the command line, which saves a round trip."""
FALLBACK = frozenset({"facts", "telemetry"})
"""Scripts that a droplet without a usable Python can run in POSIX sh."""
_ARGUMENT_LIMIT = 4096
_COMPLAINTS_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Hello:
    """What a script said when it began.

    Attributes:
        python: Its version, or None for the sh fallback.
        uid: The user it runs as; None where that is not told.
        cached: The scripts lie on the droplet's disk for the next time.
        uncached: Why they do not.
    """

    python: str | None
    uid: int | None
    cached: bool
    uncached: str | None = None


class ScriptStream:
    """A running script; made by ``open_script``. Iterate it by ``read``."""

    def __init__(self, process: Process, host: str, script: str, hello: Hello, lines: LineReader) -> None:
        self._process = process
        self._host = host
        self._script = script
        self._lines = lines
        self._complaints = bytearray()
        self.hello = hello

    def read(self, timeout: float) -> dict[str, Any] | None:
        """The next line, or None once the script ended well.

        Raises:
            TimeoutError: Nothing came in time; the script runs on.
            RemoteError: LOST, or SCRIPT_FAILED: it raised, ended with an error, or sent what is no line of JSON.
        """
        deadline = time.monotonic() + timeout
        while (line := self._pop()) is None:
            left = deadline - time.monotonic()
            if left < 0:  # whatever else came, complaints without end for instance
                raise TimeoutError(f"{self._host}: no line in time")
            chunk = self._process.read(left)
            if chunk is None:
                self._check_end(max(1.0, deadline - time.monotonic()))
                return None
            if chunk.source is Source.OUT:
                self._lines.feed(chunk.data)
            else:
                self._complaints += chunk.data
                del self._complaints[:-_COMPLAINTS_KEPT]
        answer = self._parse(line)
        if answer.keys() == {"error", "message", "where"}:
            raise self._failed(f"{printable(str(answer['message']))} ({printable(str(answer['where']))})")
        return answer

    def close(self) -> None:
        """End the script. Calling it again does nothing."""
        self._process.close()

    def __enter__(self) -> ScriptStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pop(self) -> bytes | None:
        try:
            return self._lines.pop()
        except ValueError as error:
            raise self._failed(str(error)) from error

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise self._failed(f"it sent what is no JSON: {printable(line[:200])}") from error
        if not isinstance(answer, dict):
            raise self._failed(f"it sent JSON that is no object: {printable(line[:200])}")
        return answer

    def _check_end(self, timeout: float) -> None:
        done = self._process.wait(timeout)
        if done.exit_status != 0:
            how = f"status {done.exit_status}" if done.signal is None else f"signal {done.signal}"
            raise self._failed(f"it ended with {how}: {printable(bytes(self._complaints[-300:])) or 'no words'}")
        if self._lines.rest:
            raise self._failed("it ended within a line")

    def _failed(self, what: str) -> RemoteError:
        return RemoteError(FailureKind.SCRIPT_FAILED, f"{self._host}: the script {self._script} failed: {what}")


def open_script(
    transport: Transport,
    script: str,
    request: Mapping[str, Any],
    *,
    privilege: Privilege | None = None,
    timeout: float,
    root: str = "/",
    path: Sequence[str] | None = None,
) -> ScriptStream:
    """Start a remote script; it ends with its stream, or with the line.

    Args:
        transport: The droplet.
        script: Its name, as the module's in ``remote_scripts``.
        request: What its docstring and docs/wire.md say.
        privilege: Run it as root by this; None runs it as whoever logged in.
        timeout: Seconds until it must have said hello, without the time a person takes to type a password.
        root: The folder that it takes for ``/``.
        path: Where it looks for tools; None for the usual folders.

    Raises:
        RemoteError: PYTHON_MISSING where there is neither Python nor a fallback, SUDO_*, SCRIPT_FAILED,
            COMMAND_TIMED_OUT, SHELL_REFUSED, STILL_BOOTING, LOST.
    """
    call: dict[str, Any] = {"bundle": bundle().id, "script": script, "root": root, "request": dict(request)}
    if path is not None:
        call["path"] = list(path)
    starter = _Starter(transport, script, json.dumps(call, allow_nan=False), privilege, timeout)
    try:
        return starter.with_password(starter.python)
    except RemoteError as error:
        if starter.without_python is None or script not in FALLBACK:
            raise
        try:
            return starter.with_password(lambda: starter.shell(request, root))
        except RemoteError as second:
            if second.kind is FailureKind.LOST:
                raise
            raise error from second


def run_script(
    transport: Transport,
    script: str,
    request: Mapping[str, Any],
    *,
    privilege: Privilege | None = None,
    timeout: float,
    root: str = "/",
    path: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Run a remote script that gives one answer, and wait for its end.

    Raises:
        RemoteError: As ``open_script`` and ``ScriptStream.read``; SCRIPT_FAILED where it gave no answer or two.
    """
    deadline = time.monotonic() + timeout
    with open_script(
        transport, script, request, privilege=privilege, timeout=timeout, root=root, path=path
    ) as stream:
        answers = []
        try:
            while (answer := stream.read(deadline - time.monotonic())) is not None:
                answers.append(answer)
                if len(answers) > 1:
                    break
        except TimeoutError as error:
            raise RemoteError(
                FailureKind.COMMAND_TIMED_OUT,
                f"{transport.name}: the script {script} was not done within {timeout:g} s and was ended",
            ) from error
    if len(answers) != 1:
        raise RemoteError(
            FailureKind.SCRIPT_FAILED, f"{transport.name}: the script {script} gave {len(answers)} answers, not one"
        )
    return answers[0]


class _Starter:
    """One way after the other to get a script going."""

    def __init__(
        self, transport: Transport, script: str, call: str, privilege: Privilege | None, timeout: float
    ) -> None:
        self._transport = transport
        self._script = script
        self._call = call
        self._privilege = privilege if privilege is not None and privilege.needed else None
        self._timeout = timeout
        self.without_python: str | None = None
        """Why no Python ran the script, where that was it: "there is none"."""

    def with_password(self, start: Callable[[], ScriptStream]) -> ScriptStream:
        """Start, and where sudo wants a password for that, ask for it and start again."""
        if self._privilege is None:
            return start()
        asked = self._privilege.asked
        try:
            return start()
        except RemoteError as error:
            if error.kind is not FailureKind.SUDO_PASSWORD_WANTED:
                raise
        self._privilege.ask(self._transport, asked)
        return start()

    def python(self) -> ScriptStream:
        """By python3, with the scripts sent where they are not there yet."""
        # sudo writes the whole command into the log: then it is kept short, and costs a round trip.
        private = self._privilege is not None or self._script not in PUBLIC or len(self._call) > _ARGUMENT_LIMIT
        command, given = launch_command.python(self._call, private=private)
        if self._privilege is not None:
            command, first = self._privilege.wrap(command)
            given = first + given
        return self._start(command, given)

    def shell(self, request: Mapping[str, Any], root: str) -> ScriptStream:
        """By sh, where there is no usable Python."""
        command = launch_command.shell(self._script, request, root, why=self.without_python or "")
        if self._privilege is not None:
            command, first = self._privilege.wrap(command)
            return self._start(command, first)
        return self._start(command, b"")

    def _start(self, command: Sequence[str], given: bytes) -> ScriptStream:
        deadline = time.monotonic() + self._timeout
        process = self._transport.open(command, timeout=self._timeout, guard=False)
        try:
            handshake = Handshake(process, self._transport.name, deadline)
            if given:
                handshake.send(given)
            return self._stream(process, handshake.greeting(bundle), handshake)
        except BaseException:
            process.close()
            raise

    def _stream(self, process: Process, greeting: Greeting, handshake: Handshake) -> ScriptStream:
        host = self._transport.name
        answer = greeting.answer
        error = answer.get("error")
        if error in ("no-python", "python-version"):
            found = f"its python3 is {printable(str(answer.get('python')), 20)}"
            self.without_python = found if "python" in answer else "there is none"
            raise RemoteError(
                FailureKind.PYTHON_MISSING,
                f"{host}: Python 3.10 or newer is needed, and {self.without_python}",
                hint="install it beside the system's own, for example `apt-get install python3.11`",
            )
        if "hello" not in answer:
            if self._privilege is not None and (
                refused := sudo.refusal(self._privilege.user, host, greeting.complaints)
            ):
                raise refused
            # python3 broken by a half-done upgrade or a failing disk, for instance.
            self.without_python = f"its python3 does not start: {printable(handshake.said(), 200)}"
            raise RemoteError(
                FailureKind.SCRIPT_FAILED, f"{host}: the script {self._script} did not start: {handshake.said()}"
            )
        lines = LineReader(compressed=answer.get("compress") == "zlib")
        lines.feed(greeting.rest)
        uid, python, uncached = answer.get("uid"), answer.get("python"), answer.get("uncached")
        hello = Hello(
            python=printable(python, 20) if isinstance(python, str) else None,
            uid=uid if isinstance(uid, int) else None,
            cached=answer.get("cached") is True,
            uncached=printable(uncached) if isinstance(uncached, str) else None,
        )
        return ScriptStream(process, host, self._script, hello, lines)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
