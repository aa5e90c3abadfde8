"""paramiko's client connection with the gaps closed that a program notices.

Imported only by ``paramiko_api``, when a connection is made. Departures from paramiko 5.1, leaning
on names that paramiko keeps for itself (tests/remote would notice a change):

- What the server says before its banner is kept, bounded: that is where OpenSSH tells why it hangs up.
- The goodbye's reason (SSH_MSG_DISCONNECT) and a refused channel's words are kept; a refusal goes to the thread
  that asked, where paramiko lets any thread take it.
- Authentication is a conversation with the login's own thread (``authentication.userauth``), which can offer a key
  without signing, and can wait for a person without holding up the connection.
- A write that makes no progress ends the connection, where paramiko tries for ever with a lock held.
- The thread wakes once a second, not ten times: 100 droplets otherwise cost 1,000 wake-ups a second.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import deque
from typing import Any

from paramiko import common
from paramiko.message import Message
from paramiko.transport import Transport

from console.remote.ssh import ssh_wire
from console.remote.ssh.paramiko_api import ChannelRefused, NoBanner, Stream
from console.remote.ssh.paramiko_auth import AuthBridge
from console.remote.ssh.paramiko_channel import ClientChannel
from console.remote.ssh.paramiko_packets import ClientPacketizer

BANNER_LINES = 100
BANNER_LINE_BYTES = 8192

logging.getLogger("paramiko").addHandler(logging.NullHandler())  # otherwise it writes into the screen


class ClientTransport(Transport):  # type: ignore[misc]
    """Implements ``console.remote.ssh.paramiko_api.Handshake``."""

    _active_check_timeout = 1.0

    def __init__(self, stream: Stream, host_key_algorithms: tuple[str, ...]) -> None:
        super().__init__(stream, packetizer_class=ClientPacketizer)
        self.disconnected: tuple[int, str] | None = None
        self.host_key_blob = b""
        self._host_key_algorithms = host_key_algorithms
        self._opening: dict[int, ClientChannel] = {}
        self._pings: deque[threading.Event] = deque()
        self._ping_lock = threading.Lock()
        self._banner_deadline = 0.0
        self._before_banner: list[str] = []

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        """The host key algorithms to propose, certificates only where an authority is known."""
        return tuple(name for name in self._host_key_algorithms if name in self._key_info)

    # --- from the stream to a proved host key

    def negotiate(self, timeout: float) -> None:
        """See ``Handshake.negotiate``."""
        self._banner_deadline = time.monotonic() + timeout
        self.handshake_timeout = timeout
        self.auth_handler = AuthBridge(self._auth_trigger)
        done = threading.Event()
        self.start_client(event=done)
        if not done.wait(timeout):
            self.close()
            if not self.remote_version:
                raise NoBanner(tuple(self._before_banner), closed=False)
            raise TimeoutError("the key exchange did not end")
        if not self.is_active():
            error = self.get_exception()
            if isinstance(error, EOFError) and self.packetizer.handshake_timed_out():
                raise TimeoutError("the key exchange did not end") from error
            raise error or EOFError("the connection ended during the key exchange")

    def _check_banner(self) -> None:
        lines = self._before_banner
        while len(lines) < BANNER_LINES:
            line = self._read_banner_line(lines)
            if line.startswith("SSH-"):
                version = line.split("-", 2)[1]
                if version not in ("2.0", "1.99"):
                    raise NoBanner((line,), closed=False)
                self.remote_version = line
                return
            lines.append(line)
        raise NoBanner(tuple(lines), closed=False)

    def _read_banner_line(self, before: list[str]) -> str:
        line = b""
        while not line.endswith(b"\n"):
            try:
                byte = self.sock.recv(1)
            except TimeoutError:
                if self.packetizer.closed or time.monotonic() > self._banner_deadline:
                    raise NoBanner((*before, _text(line)), closed=False) from None
                continue
            except OSError as error:
                raise NoBanner((*before, _text(line)), closed=True) from error
            if not byte:
                raise NoBanner((*before, _text(line)), closed=True)
            line += byte
            if len(line) > BANNER_LINE_BYTES:
                raise NoBanner((*before, _text(line[:100])), closed=False)
        return _text(line)

    def _verify_key(self, host_key: bytes, sig: bytes) -> None:
        super()._verify_key(host_key, sig)
        self.host_key_blob = host_key

    def _parse_disconnect(self, m: Any) -> None:
        self.disconnected = (m.get_int(), m.get_text())

    # --- authentication

    def auth_send(self, payload: bytes) -> None:
        """See ``Handshake.auth_send``."""
        self._send_user_message(Message(payload))

    def auth_receive(self, timeout: float) -> bytes:
        """See ``Handshake.auth_receive``."""
        bridge: AuthBridge = self.auth_handler
        return bridge.receive(timeout)

    # --- channels

    def open_channel(
        self, kind: str = "session", *, timeout: float, to: tuple[str, int] | None = None
    ) -> ClientChannel:
        """See ``paramiko_api.Transport.open_channel``."""
        if not self.is_active():
            raise EOFError("the connection is closed")
        with self.lock:
            number = self._next_channel()
            channel = ClientChannel(number)
            self._channels.put(number, channel)
            self.channels_seen[number] = True
            channel._set_transport(self)
            channel._set_window(self.default_window_size, self.default_max_packet_size)
            self._opening[number] = channel
        payload = (
            common.cMSG_CHANNEL_OPEN
            + ssh_wire.string(kind)
            + b"".join(map(ssh_wire.uint32, (number, self.default_window_size, self.default_max_packet_size)))
        )
        if to is not None:
            payload += ssh_wire.string(to[0]) + ssh_wire.uint32(to[1])
            payload += ssh_wire.string("127.0.0.1") + ssh_wire.uint32(0)
        self._send_user_message(Message(payload))
        channel.answered.wait(timeout)
        with self.lock:
            if channel.refused is not None:
                raise channel.refused
            if channel.active and not channel.closed:
                return channel
            if not self.is_active() or channel.closed:
                raise EOFError("the connection ended while a channel was opened")
            channel.abandoned = True
        raise TimeoutError("no answer to the request for a channel")

    def _parse_channel_open_success(self, m: Any) -> None:
        super()._parse_channel_open_success(m)
        m.rewind()
        with self.lock:
            channel = self._opening.pop(m.get_int(), None)
            abandoned = channel is not None and channel.abandoned
        if channel is not None:
            channel.answered.set()
            if abandoned:
                channel.close()

    def _parse_channel_open_failure(self, m: Any) -> None:
        number, code, text = m.get_int(), m.get_int(), m.get_text()
        with self.lock:
            channel = self._opening.pop(number, None)
            self._channels.delete(number)
        if channel is not None:
            channel.refused = ChannelRefused(code, text)
            channel.answered.set()

    # --- liveness and end

    def silent_for(self) -> float:
        """See ``paramiko_api.Transport.silent_for``."""
        return time.monotonic() - float(self.packetizer.read_at)

    def ping(self, timeout: float) -> float:
        """See ``paramiko_api.Transport.ping``."""
        began = time.monotonic()
        while (since := self.packetizer.writing_since) is not None and time.monotonic() - since > 0.05:
            # A stuck writer holds the lock that sending needs.
            if time.monotonic() - began > timeout:
                raise TimeoutError("the connection takes no more data")
            time.sleep(0.05)
        answered = threading.Event()
        with self._ping_lock:  # the answers come in the order of the requests
            if not self.is_active():
                raise EOFError("the connection is closed")
            self._pings.append(answered)
            name = ssh_wire.string("keepalive@openssh.com")
            self._send_user_message(Message(common.cMSG_GLOBAL_REQUEST + name + ssh_wire.boolean(True)))
        if not answered.wait(max(0.0, timeout - (time.monotonic() - began))):
            raise TimeoutError("no answer from the other side")
        if not self.is_active():
            raise EOFError("the connection is closed")
        return time.monotonic() - began

    def _parse_request_success(self, m: Any) -> None:
        if self._pings:
            self._pings.popleft().set()

    _parse_request_failure = _parse_request_success

    def run(self) -> None:
        """The connection's thread (called by paramiko); whoever waits for an answer is woken at its end."""
        try:
            super().run()
        finally:
            while self._pings:
                self._pings.popleft().set()
            for channel in list(self._opening.values()):
                channel.answered.set()
            if self.completion_event is not None:
                self.completion_event.set()  # paramiko leaves that out where this side closed the connection

    def close(self) -> None:
        """See ``paramiko_api.Transport.close``."""
        if isinstance(self.sock, socket.socket):
            with contextlib.suppress(OSError):  # it may not be connected any more
                self.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread at once
        super().close()
        self.sock.close()

    _channel_handler_table = {  # noqa: RUF012 - paramiko's own is a class attribute too
        **Transport._channel_handler_table,
        common.MSG_CHANNEL_SUCCESS: ClientChannel._request_success,
        common.MSG_CHANNEL_FAILURE: ClientChannel._request_failed,
        common.MSG_CHANNEL_DATA: ClientChannel._feed,
        common.MSG_CHANNEL_EXTENDED_DATA: ClientChannel._feed_extended,
        common.MSG_CHANNEL_WINDOW_ADJUST: ClientChannel._window_adjust,
        common.MSG_CHANNEL_REQUEST: ClientChannel._handle_request,
        common.MSG_CHANNEL_EOF: ClientChannel._handle_eof,
        common.MSG_CHANNEL_CLOSE: ClientChannel._handle_close,
    }


def _text(line: bytes) -> str:
    return line.rstrip(b"\r\n").decode("utf-8", "replace")
