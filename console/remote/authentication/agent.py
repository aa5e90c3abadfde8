"""The SSH agent's protocol (draft-ietf-sshm-ssh-agent), as far as logging in needs it.

paramiko's own client looks at SSH_AUTH_SOCK only, waits for ever, and sends the wrong blob for RSA certificates.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from types import TracebackType

from console.remote.ssh import ssh_wire

_FAILURE = 5
_REQUEST_IDENTITIES, _IDENTITIES = 11, 12
_SIGN_REQUEST, _SIGNATURE = 13, 14
_RSA_FLAGS = {"rsa-sha2-256": 2, "rsa-sha2-512": 4}
_MAX_BYTES = 1 << 20
_LIST_TIMEOUT = 5.0
SIGN_TIMEOUT = 120.0
"""The agent may be waiting for a touch, or for a person's word."""


class AgentError(OSError):
    """The agent cannot be reached, or declined; the text says which."""


@dataclass(frozen=True, slots=True)
class AgentKey:
    """A key that the agent holds."""

    blob: bytes
    comment: str


class Agent:
    """A connection to an agent; close it after the login."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_LIST_TIMEOUT)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise AgentError(f"no agent answers at {path}: {error.strerror or error}") from error

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def keys(self) -> list[AgentKey]:
        """The keys and certificates it holds, in its order.

        Raises:
            AgentError: It did not say.
        """
        reader = self._ask(bytes([_REQUEST_IDENTITIES]), _IDENTITIES, _LIST_TIMEOUT)
        try:
            return [AgentKey(reader.string(), reader.text()) for _ in range(reader.uint32())]
        except ssh_wire.WireError as error:
            raise AgentError("the agent's answer makes no sense") from error

    def sign(self, blob: bytes, data: bytes, algorithm: str) -> bytes:
        """Have ``data`` signed by the key with that public blob.

        Raises:
            AgentError: Refused, or it took longer than ``SIGN_TIMEOUT``.
        """
        flags = _RSA_FLAGS.get(algorithm.replace("-cert-v01@openssh.com", ""), 0)
        request = bytes([_SIGN_REQUEST]) + ssh_wire.string(blob) + ssh_wire.string(data) + ssh_wire.uint32(flags)
        return self._ask(request, _SIGNATURE, SIGN_TIMEOUT).string()

    def _ask(self, message: bytes, wanted: int, timeout: float) -> ssh_wire.Reader:
        self._socket.settimeout(timeout)
        try:
            self._socket.sendall(ssh_wire.string(message))
            size = int.from_bytes(self._receive(4), "big")
            if not 0 < size <= _MAX_BYTES:
                raise AgentError("the agent's answer makes no sense")
            answer = self._receive(size)
        except TimeoutError as error:
            raise AgentError("the agent does not answer") from error
        except AgentError:
            raise
        except OSError as error:
            raise AgentError(f"the agent is gone: {error.strerror or error}") from error
        if answer[0] == _FAILURE:
            raise AgentError("the agent declined")
        if answer[0] != wanted:
            raise AgentError("the agent's answer makes no sense")
        return ssh_wire.Reader(answer[1:])

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise AgentError("the agent hung up")
            data += chunk
        return data

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class AgentSigner:
    """Signs with a key that an agent holds.

    Attributes:
        blob: What is sent to the server: the key, or a certificate for it.
    """

    def __init__(self, agent: Agent, held: bytes, blob: bytes) -> None:
        self._agent = agent
        self._held = held
        self.blob = blob

    def sign(self, data: bytes, algorithm: str) -> bytes:
        """See ``userauth.Signer.sign``."""
        return self._agent.sign(self._held, data, algorithm)
