"""The command lines that start a remote script: by Python, or by sh where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.remote.scripts.bundle import boot_line, fallback

# python3 first, since it is the system's own; the code below looks for a newer one if that is too old.
_FIND = """
for p in python3 python3.13 python3.12 python3.11 python3.10; do
 command -v $p >/dev/null 2>&1 && exec $p -I -S -c 'import sys;exec(sys.argv[1])' "$@"; done
printf '\\001droplet-console/1 {"error":"no-python"}\\n'; exit 69
"""

# Anything that calls itself python3 must understand this. It has read nothing of the input yet.
_CODE = """
import os,sys
if sys.version_info<(3,10):
 for v in "13","12","11","10":
  try:os.execvp("python3."+v,["python3."+v,"-I","-S","-c","import sys;exec(sys.argv[1])"]+sys.argv[1:])
  except OSError:pass
 sys.stdout.write('\\1droplet-console/1 {"error":"python-version","python":"%d.%d.%d"}\\n'%sys.version_info[:3])
 sys.stdout.flush()
 os._exit(69)
exec(sys.argv[2] if len(sys.argv)>2 else sys.stdin.buffer.readline())
"""


def python(call: str, *, private: bool) -> tuple[list[str], bytes]:
    """The command, and what must be written to its input.

    Args:
        call: The call as JSON, one line.
        private: Keep it, and the boot code, out of the command line. sshd gives no room for input until the command
            is accepted, so this costs a round trip.
    """
    command = ["sh", "-c", _FIND, "droplet-console", _CODE]
    if private:
        return command, f"{boot_line()}\n{call}\n".encode()
    return [*command, boot_line(), call], b""


def shell(script: str, request: Mapping[str, Any], root: str, *, why: str) -> list[str]:
    """The command for the sh fallback; it has no input, and its end ends it.

    Args:
        script: Which.
        request: Its request, of which the fallback knows the interval.
        root: The folder that it takes for ``/``.
        why: Why no Python does it, for the reasons that it gives: "there is none".
    """
    interval = request.get("interval", 1)
    where = "" if root == "/" else root
    return ["env", f"DROPLET_ROOT={where}", "sh", "-c", fallback(), "droplet-console", script, str(interval), why]
