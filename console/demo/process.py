"""The demo's own process: ``python -m console.demo.process``. It ends when its standard input does.

It prints one line of JSON once it can be reached: ``{"folder", "ssh_config", "root", "path"}``. Whoever
started it holds its input: when that one ends, however it ends, the practice droplet ends too and its folder goes.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from console.demo import folders, keys, wheel
from console.demo.ports import Ports, reserve
from console.demo.real_triton import SERVED, RealTriton
from console.demo.root import Root
from console.demo.sshd import Sshd
from console.demo.web import Endpoints
from console.demo.world import World

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Serve until the end of standard input."""
    os.umask(0o077)
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    logging.getLogger("paramiko").propagate = False
    for number in _SIGNALS:
        signal.signal(number, _end_input)
    folders.sweep()
    folder = folders.make()
    try:
        _serve(folder.path)
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)
        folder.release()
    return 0


def _end_input(*_: object) -> None:
    """A signal ends it as the end of its input does; a second one does not hurry it."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _serve(folder: Path) -> None:
    server = None if "--stand-in" in sys.argv else wheel.installed()
    root = Root(folder / "root") if server is None else Root(folder / "root", "triton.service")
    root.build()
    ports, held = reserve()
    world = World(root, ports) if server is None else World(root, ports, models=SERVED)
    speaker: Callable[[threading.Event], None]
    if server is None:
        speaker = Endpoints(world, ports, held).run
    else:
        speaker = _real(server, folder / "triton", world, ports, held)
    world.write()
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    made = keys.make(folder, int(listener.getsockname()[1]))
    home = root.folder / "home"
    sshd = Sshd(made.host, made.login, keys.USER, _environment(root, home), home)
    sshd.forwarded = frozenset((ports.http, ports.metrics))
    ended = threading.Event()
    threads = [
        threading.Thread(target=world.run, args=(ended,), daemon=True),
        threading.Thread(target=speaker, args=(ended,), daemon=True),
    ]
    for thread in threads:
        thread.start()
    threading.Thread(target=sshd.serve, args=(listener,), daemon=True).start()
    try:
        told = {"folder": str(folder), "ssh_config": str(made.config), "root": str(root.folder)}
        _say({**told, "path": [str(root.bin)]})
        while os.read(0, 4096):
            pass
    except KeyboardInterrupt:
        return
    finally:
        ended.set()
        listener.close()
        sshd.close()
        for thread in threads:
            thread.join(2.0)


def _real(
    server: Path, folder: Path, world: World, ports: Ports, held: list[socket.socket]
) -> Callable[[threading.Event], None]:
    """A real Triton in the stand-in's place."""
    real = RealTriton(server, folder, ports, world.moment, world.slower)
    world.use(real)
    for one in held:
        one.close()
    return real.run


def _environment(root: Root, home: Path) -> dict[str, str]:
    """Of the commands on the practice droplet: nothing of the person's own."""
    return {
        "PATH": str(root.bin),
        "HOME": str(home),
        "TMPDIR": str(root.folder / "tmp"),
        "USER": keys.USER,
        "LOGNAME": keys.USER,
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
    }


def _say(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
