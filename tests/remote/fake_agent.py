"""An ssh-agent for the tests that holds a hardware-like key, declines, or talks nonsense."""

from __future__ import annotations

import hashlib
import socket
import threading
from pathlib import Path
from types import TracebackType

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.remote.ssh import ssh_wire

SK = "sk-ssh-ed25519@openssh.com"
APPLICATION = "ssh:"


class FakeAgent:
    """Holds one sk-ssh-ed25519 key (PROTOCOL.u2f), touched by software.

    Args:
        path: Its socket.
        answer: Sent in place of any answer, where given.
        declines: Whether it refuses to sign.
    """

    def __init__(self, path: Path, *, answer: bytes | None = None, declines: bool = False) -> None:
        self.path = str(path)
        self._answer = answer
        self._declines = declines
        self.signatures = 0
        self._key = Ed25519PrivateKey.generate()
        raw = self._key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.blob = ssh_wire.string(SK) + ssh_wire.string(raw) + ssh_wire.string(APPLICATION)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> FakeAgent:
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as requests:
            while head := requests.read(4):
                message = requests.read(int.from_bytes(head, "big"))
                connection.sendall(
                    self._answer if self._answer is not None else ssh_wire.string(self._reply(message))
                )

    def _reply(self, message: bytes) -> bytes:
        if message[0] == 11:
            return b"\x0c" + ssh_wire.uint32(1) + ssh_wire.string(self.blob) + ssh_wire.string("yubi \x1b[31mkey")
        if self._declines:
            return b"\x05"
        reader = ssh_wire.Reader(message[1:])
        reader.string()
        data = reader.string()
        self.signatures += 1
        flags, counter = b"\x01", ssh_wire.uint32(self.signatures)
        signed = hashlib.sha256(APPLICATION.encode()).digest() + flags + counter + hashlib.sha256(data).digest()
        signature = ssh_wire.string(SK) + ssh_wire.string(self._key.sign(signed)) + flags + counter
        return b"\x0e" + ssh_wire.string(signature)
