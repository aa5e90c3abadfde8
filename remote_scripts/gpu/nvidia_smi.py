"""The GPUs by nvidia-smi, where this Python cannot use NVML's library itself.

One process for life, in its own loop: a process a tick would start the driver each time, which takes seconds per
GPU where no persistence daemon runs. It is read without waiting. The processes on the GPUs take a call of their
own, on slow ticks.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
from typing import Any

from remote_scripts.call import Call
from remote_scripts.files import cut
from remote_scripts.files import name as as_key
from remote_scripts.gpu.nvml import kernel_version
from remote_scripts.gpu.nvml_device import THROTTLE
from remote_scripts.gpu.nvml_processes import Held
from remote_scripts.gpu.nvml_query import Figures, Reasons
from remote_scripts.reading import MAX_GPUS, Reading

MIB = 1 << 20
STALE = 5.0
"""Seconds without a line after which a GPU does not answer any more."""
AGAIN = 10.0
"""Seconds until an nvidia-smi that ended is started anew."""
FIRST = 0.6
"""Seconds that a tick waits for the very first line."""
QUIET = 0.05
"""Seconds without another line after which that batch is whole."""
SOON = 2.0
"""The same where it has told of GPUs: at a lost one it ends, having told of those before it."""
MAX_WORDS = 8
"""Lines kept of what it says other than figures."""
MAX_BUFFER = 1 << 20
NO_GPM = "nvidia-smi does not report it, and Python cannot use NVML here"

FIELDS: dict[str, tuple[str, float]] = {
    "index": ("index", 1),
    "uuid": ("uuid", 1),
    "name": ("name", 1),
    "driver_version": ("", 1),
    "utilization.gpu": ("utilization", 1),
    "utilization.memory": ("memory_busy", 1),
    "memory.total": ("memory_total", MIB),
    "memory.reserved": ("memory_reserved", MIB),
    "memory.used": ("memory_used", MIB),
    "memory.free": ("memory_free", MIB),
    "temperature.gpu": ("temperature", 1),
    "temperature.memory": ("memory_temperature", 1),
    "power.draw": ("power_w", 1),
    "enforced.power.limit": ("power_limit_w", 1),
    "clocks.sm": ("sm_clock_mhz", 1),
    "clocks.mem": ("memory_clock_mhz", 1),
    "clocks.max.mem": ("max_memory_clock_mhz", 1),
    "clocks_throttle_reasons.active": ("throttle", 1),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrected", 1),
    "mig.mode.current": ("mig", 1),
}
"""Field of --query-gpu to the document's key and the factor to its unit."""
RENAMED = {"clocks_throttle_reasons.active": "clocks_event_reasons.active"}
TEXTS = frozenset({"uuid", "name", "driver_version"})
NEVER = (
    "arch",
    "bus_width_bits",
    "energy_j",
    "remapped_pending",
    "remapped_failure",
    "dram_percent",
    "sm_percent",
    "tensor_percent",
    "pcie_rx_mib_s",
    "pcie_tx_mib_s",
)
_REFUSED = re.compile(r'Field "([^"]{1,80})" is not a valid field to query')
_LOST = ("GPU is lost", "GPU requires reset", "requires reset")


class SmiSource:
    """Reads nvidia-smi's loop. Used from one thread."""

    def __init__(self, call: Call, program: str) -> None:
        self._call = call
        self._program = program
        self._fields = list(FIELDS)
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._words: list[str] = []
        self._last_words = ""
        self._last_words_at = 0.0
        self._start_at = 0.0
        self._rows: dict[str, tuple[float, Figures, Reasons]] = {}
        self._driver: Figures = {"source": "nvidia-smi"}
        kernel = kernel_version(str(call.resolve("/proc/driver/nvidia/version")))
        if kernel is not None:
            self._driver["kernel_version"] = kernel

    def read(self, now: float, slow: bool) -> Reading:
        """One tick.

        Args:
            now: a monotonic clock, seconds.
            slow: ask for the processes, too.
        """
        self._follow(now)
        reading = Reading(self._driver)
        for key, (seen, figures, reasons) in self._rows.items():
            if len(reading.gpus) >= MAX_GPUS:
                reading.left_out += 1
            elif now - seen > STALE:
                recent = self._last_words if now - self._last_words_at < 2 * AGAIN else ""
                reason = recent or f"nvidia-smi has not told of it for {now - seen:.0f} s"
                known: Figures = {name: figures[name] for name in ("index", "name") if name in figures}
                reading.gpus[key] = {**known, "state": "error", "reason": reason}
                reading.reasons[key] = {"": reason}
            else:
                reading.gpus[key] = dict(figures)
                reading.reasons[key] = {"": figures["reason"]} if figures["state"] == "lost" else reasons
                reading.without_gpm.add(key)
        if not self._rows:
            reading.reason = (
                cut("; ".join(self._words)) or self._last_words or "nvidia-smi has not told of a GPU yet"
            )
        elif slow:
            reading.held = self._read_processes()
        return reading

    def processes_again(self, uuid: str) -> Held | str:
        """The process list of one GPU, asked for anew."""
        return self._read_processes().get(uuid, [])

    def close(self) -> None:
        """Ends the loop."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            process.terminate()
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
        if process.stdout is not None:
            process.stdout.close()

    def _follow(self, now: float) -> None:
        """Takes what the loop has printed, and starts it where it does not run."""
        if self._process is None:
            if now < self._start_at:
                return
            self._start(now)
        process = self._process
        if process is None or process.stdout is None:
            return
        # The first tick is worth waiting for: for the first line, and then until no more follows.
        first, wait = not self._rows, 0.0 if self._rows else FIRST
        ended, taken = False, 0
        while not ended and taken < MAX_BUFFER and select.select([process.stdout], [], [], wait)[0]:
            data = os.read(process.stdout.fileno(), 1 << 16)
            ended, taken, wait = not data, taken + len(data), QUIET if first else 0.0
            self._buffer = (self._buffer + data)[-MAX_BUFFER:]
        *lines, self._buffer = self._buffer.split(b"\n")
        if ended and self._buffer:
            lines.append(self._buffer)
        for line in lines:
            self._take(line.decode("utf-8", "replace").strip(), now)
        if ended:
            self._end(now)

    def _start(self, now: float) -> None:
        query = ",".join(self._fields)
        # Its output would sit in a buffer of 4 KiB for a minute.
        unbuffered = self._call.tool("stdbuf")
        command = [self._program, f"--query-gpu={query}", "--format=csv,noheader,nounits", "-lms", "1000"]
        try:
            self._process = subprocess.Popen(
                [unbuffered, "-oL", *command] if unbuffered else command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C"},
                bufsize=0,
            )
        except OSError as error:
            self._last_words, self._last_words_at = cut(f"nvidia-smi does not start: {error.strerror}"), now
            self._start_at = now + AGAIN
            return
        self._buffer, self._words = b"", []

    def _end(self, now: float) -> None:
        """The loop ended by itself: at once anew with other fields where it did not know one, else in a while."""
        process = self._process
        self.close()
        refused = next((found for line in self._words if (found := _REFUSED.search(line))), None)
        if refused is not None and refused.group(1) in self._fields:
            place = self._fields.index(refused.group(1))
            other = RENAMED.get(refused.group(1))
            self._fields[place : place + 1] = [other] if other else []
            self._start_at = now
            return
        status = process.returncode if process is not None else "?"
        self._last_words = cut("; ".join(self._words) or f"nvidia-smi ended with status {status}")
        self._last_words_at = now
        self._start_at = now + (SOON if self._rows else AGAIN)

    def _take(self, line: str, now: float) -> None:
        cells = [cell.strip() for cell in line.split(",")]
        more = len(cells) - len(self._fields)
        if more > 0:
            # A name may hold a comma; it is the only one of the fields that may.
            at = self._fields.index("name")
            cells[at : at + more + 1] = [", ".join(cells[at : at + more + 1])]
        if more < 0 or not cells[0].isdigit():
            if line and len(self._words) < MAX_WORDS:
                self._words.append(cut(line))
            return
        figures, reasons = self._understand(dict(zip(self._fields, cells, strict=True)))
        uuid = figures.pop("uuid", None)
        version = figures.pop("driver_version", None)
        if version is not None:
            self._driver["version"] = version
        key = as_key(uuid or "") or f"index-{figures['index']}"
        if key in self._rows or len(self._rows) < 2 * MAX_GPUS:
            self._rows[key] = (now, figures, reasons)

    def _understand(self, cells: dict[str, str]) -> tuple[Figures, Reasons]:
        """Figures of one line. A cell that is no number is the reason why there is none."""
        figures: Figures = {"state": "ok"}
        reasons: Reasons = dict.fromkeys(NEVER, NO_GPM)
        back = {new: old for old, new in RENAMED.items()}
        for field, cell in cells.items():
            key, factor = FIELDS[back.get(field, field)]
            if any(text in cell for text in _LOST):
                figures["state"], figures["reason"] = "lost", cut(cell.strip("[]"))
            if field in TEXTS:
                if not cell.startswith("["):
                    figures[key or field] = cut(cell)
            elif key == "mig":
                if cell == "Enabled":
                    figures["mig"] = True
            elif key == "throttle":
                with contextlib.suppress(ValueError):
                    bits = int(cell, 16)
                    if bits & ~1:
                        figures["throttle"] = [name for bit, name in THROTTLE if bits & bit]
            else:
                number = _number(cell)
                if number is None:
                    reasons[key] = cut(f"nvidia-smi says {cell.strip('[]') or 'nothing'}")
                else:
                    figures[key] = number * int(factor)
        missing = {key for key, _ in FIELDS.values()} - {FIELDS[back.get(field, field)][0] for field in cells}
        reasons.update(dict.fromkeys(missing - {""}, "this nvidia-smi does not know it"))
        return figures, reasons

    def _read_processes(self) -> dict[str, Held | str]:
        command = [
            self._program,
            "--query-compute-apps=gpu_uuid,pid,process_name,used_memory",
            "--format=csv,noheader,nounits",
        ]
        try:
            done = self._call.run(command, 0.7)
        except OSError as error:
            return dict.fromkeys(self._rows, cut(f"nvidia-smi does not start: {error.strerror}"))
        if not done.ok:
            why = "did not answer in time" if done.timed_out else f"ended with status {done.status}"
            return dict.fromkeys(self._rows, f"nvidia-smi --query-compute-apps {why}")
        held: dict[str, Any] = {uuid: [] for uuid in self._rows}
        for line in done.text.splitlines():
            cells = [cell.strip() for cell in line.split(",")]
            # A process's name may hold commas.
            if len(cells) >= 4 and cells[0] in held and cells[1].isdigit():
                memory = _number(cells[-1])
                held[cells[0]].append((int(cells[1]), None if memory is None else int(memory * MIB)))
        for rows in held.values():
            rows.sort()
        return held


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    if not -1e15 < value < 1e15:
        return None
    return int(value) if value.is_integer() else value
