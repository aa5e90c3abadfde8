"""The data types of the SSH protocols (RFC 4251 5), as used in messages, keys and by the agent."""

from __future__ import annotations

import base64
import hashlib
import struct


class WireError(ValueError):
    """Bytes that are not what the protocol says they should be."""


def uint32(value: int) -> bytes:
    """Encode a uint32."""
    return struct.pack(">I", value)


def string(value: bytes | str) -> bytes:
    """Encode a string; text as UTF-8."""
    data = value.encode() if isinstance(value, str) else value
    return uint32(len(data)) + data


def mpint(value: int) -> bytes:
    """Encode a number that is not negative."""
    return string(value.to_bytes(value.bit_length() // 8 + 1, "big") if value else b"")


def boolean(value: bool) -> bytes:
    """Encode a boolean."""
    return b"\x01" if value else b"\x00"


class Reader:
    """Takes values off the front of a message."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        """Whether everything was taken."""
        return self._at >= len(self._data)

    def take(self, size: int) -> bytes:
        """Exactly ``size`` bytes.

        Raises:
            WireError: There are not so many.
        """
        if size > len(self._data) - self._at:
            raise WireError("the message ends too early")
        self._at += size
        return self._data[self._at - size : self._at]

    def byte(self) -> int:
        """One byte."""
        return self.take(1)[0]

    def boolean(self) -> bool:
        """A boolean."""
        return self.byte() != 0

    def uint32(self) -> int:
        """A uint32."""
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        """A string's bytes."""
        return self.take(self.uint32())

    def text(self) -> str:
        """A string as text; what is no UTF-8 is replaced."""
        return self.string().decode("utf-8", "replace")

    def names(self) -> tuple[str, ...]:
        """A name-list."""
        text = self.text()
        return tuple(text.split(",")) if text else ()

    def rest(self) -> bytes:
        """What was not taken yet."""
        return self.take(len(self._data) - self._at)


def key_type(blob: bytes) -> str:
    """The type that a public key or certificate blob begins with, such as "ssh-ed25519".

    Raises:
        WireError: It does not begin like one.
    """
    try:
        return Reader(blob).string().decode("ascii")
    except UnicodeDecodeError as error:
        raise WireError("the key's type is not text") from error


def fingerprint(blob: bytes) -> str:
    """The SHA256 fingerprint of a key, as ``ssh-keygen -l`` prints it; of a certificate, that of its bytes."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
