"""One HTTP/1.1 connection of the load source, kept open from request to request."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of one response."""

    status: int
    body: bytes


class Connection:
    """Opens on first use and again after every failure."""

    def __init__(self, address: str, port: int) -> None:
        self.address = address
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> Answer:
        """Send one request and read the whole response; OSError where the connection fails."""
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.address, self.port)
        reader, writer = self.streams
        head = f"POST {path} HTTP/1.1\r\nHost: {self.address}\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            writer.write(head.encode() + body)
            return await self._read(reader)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise ConnectionError("the server closed the connection within a response") from error

    async def close(self) -> None:
        """Close: a connection that is held delays a restart of Triton by its whole exit timeout."""
        if self.streams is None:
            return
        writer = self.streams[1]
        self.streams = None
        writer.close()
        try:
            await writer.wait_closed()
        except OSError:
            return  # It is gone, which is what was wanted.

    async def _read(self, reader: asyncio.StreamReader) -> Answer:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        status = int(head[0].split()[1])
        headers = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        if headers.get("transfer-encoding") == "chunked":
            return Answer(status, await _chunks(reader))
        return Answer(status, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        size = int((await reader.readuntil(b"\r\n")).strip(), 16)
        body += (await reader.readexactly(size + 2))[:-2]
        if size == 0:
            return body
