"""The conversation of SSH authentication (RFC 4252, 4256), one request and its answer at a time.

No policy here: what to offer, and in which order, is ``console.remote.authentication.auth``'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from console.remote.ssh import ssh_wire
from console.remote.ssh.paramiko_api import Handshake

SERVICE_REQUEST = 5
SERVICE_ACCEPT = 6
REQUEST = 50
FAILURE = 51
SUCCESS = 52
BANNER = 53
KEY_ACCEPTED = CHALLENGES = NEW_PASSWORD_WANTED = 60
ANSWERS = 61


class Signer(Protocol):
    """Something that holds a private key, or speaks to what holds it."""

    blob: bytes
    """The public key, or the certificate, as it is sent."""

    def sign(self, data: bytes, algorithm: str) -> bytes:
        """A signature as the protocol wants it (its algorithm's name, then its bytes).

        Raises:
            OSError, ValueError: It cannot, or was not allowed to.
        """


@dataclass(frozen=True, slots=True)
class Success:
    """Logged in."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Not (yet) logged in.

    Attributes:
        methods: What can go on from here.
        partial: True where the request itself was right, and more is wanted.
    """

    methods: tuple[str, ...]
    partial: bool


class Wanted(Enum):
    """What the server wants before it decides."""

    SIGNATURE = "signature"
    NEW_PASSWORD = "new password"  # noqa: S105 - a message's meaning


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Keyboard-interactive questions: (text, whether to show what is typed). The texts are the server's own."""

    title: str
    instruction: str
    prompts: tuple[tuple[str, bool], ...]


Answer = Success | Failure | Wanted | Dialogue

MAX_PROMPTS = 20
"""A server that asks more at once is not asking a person."""


class UserAuth:
    """One connection's authentication. Not for several threads."""

    def __init__(self, transport: Handshake, user: str) -> None:
        self._transport = transport
        self._user = user
        self._asked_for_service = False
        self.banners: list[str] = []
        """What the server said meanwhile ("System is booting up ..."), not yet safe to print."""

    def none(self, timeout: float) -> Success | Failure:
        """Ask to be let in as one is; the failure tells which methods there are."""
        return _decision(self._ask(self._request("none"), timeout))

    def offer_key(self, blob: bytes, algorithm: str, timeout: float) -> bool | Failure | Success:
        """Whether the server would accept this key; True where it would."""
        payload = self._request("publickey") + ssh_wire.boolean(False)
        answer = self._ask(payload + ssh_wire.string(algorithm) + ssh_wire.string(blob), timeout)
        return answer if isinstance(answer, Success | Failure) else True

    def proof(self, key: Signer, algorithm: str) -> bytes:
        """Have ``key`` sign for this connection; ``prove`` sends it.

        Raises:
            OSError, ValueError: As ``Signer.sign``.
        """
        payload = self._request("publickey") + ssh_wire.boolean(True)
        payload += ssh_wire.string(algorithm) + ssh_wire.string(key.blob)
        signature = key.sign(ssh_wire.string(self._transport.session_id) + payload, algorithm)
        return payload + ssh_wire.string(signature)

    def prove(self, proof: bytes, timeout: float) -> Success | Failure:
        """Send what ``proof`` made."""
        return _decision(self._ask(proof, timeout))

    def password(self, password: str, timeout: float) -> Success | Failure | Wanted:
        """Send a password; ``Wanted.NEW_PASSWORD`` where it has expired."""
        payload = self._request("password") + ssh_wire.boolean(False) + ssh_wire.string(password)
        answer = self._ask(payload, timeout, sixty=Wanted.NEW_PASSWORD)
        if isinstance(answer, Dialogue):
            raise ssh_wire.WireError("the server asks questions in answer to a password")
        return answer

    def interactive(self, timeout: float) -> Success | Failure | Dialogue:
        """Begin a keyboard-interactive dialogue."""
        payload = self._request("keyboard-interactive") + ssh_wire.string("") + ssh_wire.string("")
        return _dialogue(self._ask(payload, timeout, sixty=None))

    def answer(self, answers: list[str], timeout: float) -> Success | Failure | Dialogue:
        """Answer a dialogue; the server may ask on."""
        payload = bytes([ANSWERS]) + ssh_wire.uint32(len(answers)) + b"".join(map(ssh_wire.string, answers))
        return _dialogue(self._ask(payload, timeout, sixty=None))

    def _request(self, method: str) -> bytes:
        return bytes([REQUEST]) + b"".join(map(ssh_wire.string, (self._user, "ssh-connection", method)))

    def _ask(self, payload: bytes, timeout: float, sixty: Wanted | None = Wanted.SIGNATURE) -> Answer:
        if not self._asked_for_service:
            # Not waiting for the service's acceptance saves a round trip; the server reads both in order.
            self._transport.auth_send(bytes([SERVICE_REQUEST]) + ssh_wire.string("ssh-userauth"))
            self._asked_for_service = True
        self._transport.auth_send(payload)
        while True:
            message = self._transport.auth_receive(timeout)
            reader = ssh_wire.Reader(message[1:])
            if message[0] == SUCCESS:
                return Success()
            if message[0] == FAILURE:
                return Failure(reader.names(), reader.boolean())
            if message[0] == BANNER:
                self.banners = [*self.banners, reader.text()][-20:]
            elif message[0] == KEY_ACCEPTED:
                return sixty if sixty is not None else _read_dialogue(reader)
            elif message[0] != SERVICE_ACCEPT:
                raise ssh_wire.WireError(f"unexpected message {message[0]} during authentication")


def _read_dialogue(reader: ssh_wire.Reader) -> Dialogue:
    title, instruction, _language, count = reader.text(), reader.text(), reader.text(), reader.uint32()
    if count > MAX_PROMPTS:
        raise ssh_wire.WireError(f"the server asks {count} questions at once")
    return Dialogue(title, instruction, tuple((reader.text(), reader.boolean()) for _ in range(count)))


def _decision(answer: Answer) -> Success | Failure:
    if isinstance(answer, Success | Failure):
        return answer
    raise ssh_wire.WireError("the server asks something in answer to a proof")


def _dialogue(answer: Answer) -> Success | Failure | Dialogue:
    if isinstance(answer, Wanted):
        raise ssh_wire.WireError("the server wants a signature in a dialogue")
    return answer
