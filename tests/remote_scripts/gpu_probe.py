"""A collector in a process of its own, since the loader looks for NVML's library where its environment said then.

Each line of standard input is one tick's arguments as JSON; each line of standard output is what it gave.
"""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

from remote_scripts.call import Call
from remote_scripts.gpu import gpm
from remote_scripts.gpu.collector import GpuCollector


def main() -> None:
    options = json.loads(sys.argv[1])
    call = Call({}, io.BytesIO(), Path(options["root"]), options["path"])
    collector = GpuCollector(call, gpm=options.get("gpm", True), patience=options.get("patience", 5.0))
    for number, line in enumerate(sys.stdin):
        tick = json.loads(line)
        answer = repeat(collector, tick["repeat"]) if "repeat" in tick else look(collector, number, tick)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    collector.close()


def look(collector: GpuCollector, number: int, tick: dict[str, Any]) -> dict[str, Any]:
    doc: dict[str, Any] = {}
    unavailable: dict[str, str] = {}
    servers = {int(pid): name for pid, name in tick.get("servers", {}).items()}
    began = time.monotonic()
    collector.read(doc, unavailable, tick=number, slow=tick["slow"], now=tick["now"], servers=servers)
    return {"doc": doc, "unavailable": unavailable, "took": time.monotonic() - began}


def repeat(collector: GpuCollector, times: int) -> dict[str, Any]:
    """Processor seconds of so many ticks, each with GPM figures, and the most memory ever held."""
    gpm.SHORTEST = 0.0
    began = time.process_time()
    for number in range(times):
        collector.read({}, {}, tick=number + 1, slow=number % 10 == 0, now=float(number))
    spent = time.process_time() - began
    # Not getrusage: its peak still holds what the process was before it became this program.
    status = Path("/proc/self/status").read_text()
    return {"spent": spent, "peak_kib": int(status.split("VmHWM:")[1].split()[0])}


if __name__ == "__main__":
    main()
