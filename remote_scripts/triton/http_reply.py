"""Reading one HTTP/1.1 response as it arrives, with limits: the server may be anything that listens there."""

from __future__ import annotations

HEAD_LIMIT = 64 << 10
"""Bytes of the status line and the header lines together."""
_CHUNK_LINE_LIMIT = 1 << 10


class ReplyError(Exception):
    """What came is no HTTP response, or more than is taken. ``str()`` is the reason as a person reads it."""


class Reply:
    """A response in the making: ``feed`` it until it says that it is complete.

    Attributes:
        begun: something arrived.
        status: HTTP's, once the head is complete.
        keep: the connection may serve another request.
    """

    __slots__ = ("_buffer", "_head", "_left", "_limit", "_parts", "_size", "begun", "keep", "status")

    def __init__(self, limit: int) -> None:
        self.begun = False
        self.status = 0
        self.keep = True
        self._limit = limit
        self._buffer = b""
        self._parts: list[bytes] = []
        self._size = 0
        self._head = True
        self._left: int | None = None
        """Bytes of the body still to come; None until the connection closes; -1 for chunks."""

    def body(self) -> bytes:
        """The body as far as it came."""
        return b"".join(self._parts)

    def feed(self, data: bytes) -> bool:
        """Take what the socket gave.

        Args:
            data: empty at the end of the stream.

        Returns:
            True once the response is complete.

        Raises:
            ReplyError: it is no HTTP response, too large, or ended too early.
        """
        if not data:
            if not self._head and self._left is None:
                self.keep = False
                return True
            raise ReplyError("the connection was closed before the answer was complete")
        self.begun = True
        if not self._head and self._left != -1:
            return self._take(data)
        self._buffer += data
        if self._head and not self._read_head():
            return False
        if self._left == -1:
            return self._read_chunks()
        rest, self._buffer = self._buffer, b""
        return self._take(rest)

    def _take(self, data: bytes) -> bool:
        if self._left is None:
            self._keep_part(data)
            return False
        part = data[: self._left]
        self._keep_part(part)
        self._left -= len(part)
        if len(part) < len(data):
            self.keep = False  # more than was announced: whatever it is, it is no answer to a later request
        return self._left == 0

    def _keep_part(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            raise ReplyError(f"the answer is larger than {self._limit >> 20} MiB")
        if part:
            self._parts.append(part)

    def _read_head(self) -> bool:
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end > HEAD_LIMIT or (end < 0 and len(self._buffer) > HEAD_LIMIT):
                raise ReplyError(f"the answer's head is larger than {HEAD_LIMIT >> 10} KiB")
            if self._buffer[:5] != b"HTTP/"[: len(self._buffer[:5])]:
                raise ReplyError("what listens there does not speak HTTP")
            if end < 0:
                return False
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            lines = head.split(b"\r\n")
            words = lines[0].split(None, 2)
            if len(words) < 2 or len(words[1]) != 3 or not words[1].isdigit():
                raise ReplyError("what listens there does not speak HTTP")
            self.status = int(words[1])
            if self.status >= 200:
                self._understand(words[0], lines[1:])
                return True

    def _understand(self, protocol: bytes, lines: list[bytes]) -> None:
        self._head = False
        self.keep = protocol == b"HTTP/1.1"
        if self.status in (204, 304):
            self._left = 0
            return
        for line in lines:
            name, _, value = line.partition(b":")
            name, value = name.strip().lower(), value.strip().lower()
            if name == b"content-length" and self._left != -1:
                if not value.isdigit() or len(value) > 18:
                    raise ReplyError("the answer's length is no number")
                self._left = int(value)
                if self._left > self._limit:
                    raise ReplyError(f"the answer is larger than {self._limit >> 20} MiB")
            elif name == b"transfer-encoding":
                if value != b"chunked":
                    raise ReplyError("the answer is encoded in a way that was not asked for")
                self._left = -1
            elif name == b"connection" and b"close" in value:
                self.keep = False

    def _read_chunks(self) -> bool:
        """Chunks as far as they are complete; trailers after the last are read and dropped."""
        at = 0
        buffer = self._buffer
        while True:
            end = buffer.find(b"\r\n", at)
            if end < 0:
                if len(buffer) - at > _CHUNK_LINE_LIMIT:
                    raise ReplyError("the answer's chunks have no size")
                break
            try:
                size = int(buffer[at:end].split(b";", 1)[0], 16)
            except ValueError as error:
                raise ReplyError("the answer's chunks have no size") from error
            if size < 0 or size > self._limit:
                raise ReplyError(f"the answer is larger than {self._limit >> 20} MiB")
            if size == 0:
                return self._read_trailers(buffer, at, end)
            if len(buffer) < end + 2 + size + 2:
                break
            self._keep_part(buffer[end + 2 : end + 2 + size])
            at = end + 2 + size + 2
        self._buffer = buffer[at:]
        return False

    def _read_trailers(self, buffer: bytes, at: int, end: int) -> bool:
        done = buffer.startswith(b"\r\n", end + 2) or b"\r\n\r\n" in buffer[end + 2 :]
        if not done and len(buffer) - end > HEAD_LIMIT:
            raise ReplyError(f"the answer's trailers are larger than {HEAD_LIMIT >> 10} KiB")
        self._buffer = buffer[at:]
        return done
