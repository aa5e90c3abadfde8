"""Authentication by public key: one candidate after the other."""

from __future__ import annotations

from contextlib import nullcontext

from console.remote.authentication import identities, keys
from console.remote.authentication.agent import Agent
from console.remote.authentication.identities import Candidate, Identities
from console.remote.authentication.keys import KeyFileError, PassphraseError, PrivateKey
from console.remote.authentication.userauth import Failure, Signer, Success
from console.remote.login.exchange import Exchange
from console.remote.ssh import ssh_wire

PASSPHRASE_TRIES = 3


class PublicKeys:
    """The keys of one login.

    Attributes:
        offered: Labels of the keys that the server saw.
        notes: What could not be offered, and why.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._agent: Agent | None = None
        self._found = Identities()
        self._choice = False
        self._last: bytes | None = None
        self.offered: list[str] = []

    @property
    def notes(self) -> list[str]:
        """What could not be offered, and why."""
        return self._found.notes

    @property
    def left(self) -> bool:
        """Whether there is another key to offer."""
        return bool(self._found.candidates)

    def collect(self) -> None:
        """Ask the agent and look at the files."""
        target = self._exchange.target
        note = None
        if target.identity_agent is not None:
            try:
                self._agent = Agent(target.identity_agent)
            except OSError as error:
                note = str(error)
        self._found = identities.collect(target, self._agent, self._exchange.memory)
        if note is not None:
            self._found.notes.append(note)
        self._choice = len(self._found.candidates) > 1

    def close(self) -> None:
        """Hang up on the agent."""
        if self._agent is not None:
            self._agent.close()

    def remember(self) -> None:
        """The key offered last was right."""
        if self._last is not None:
            self._exchange.memory.keep_accepted(self._exchange.target, self._last)

    def offer_next(self) -> Success | Failure | None:
        """Offer keys until the server takes one or says which methods are left; None when there is none left."""
        while self._found.candidates:
            answer = self._offer(self._found.candidates.pop(0))
            if answer is not None:
                return answer
        return None

    def _offer(self, candidate: Candidate) -> Success | Failure | None:
        """The server's answer to one key; None where it never came to that."""
        self._last = candidate.blob
        known = candidate.blob is not None and candidate.blob == self._exchange.memory.accepted(
            self._exchange.target
        )
        # A signature may cost a person a passphrase, a touch or a click in the agent, so the server is asked first
        # whether it wants this key. Where there is no choice that would be a round trip for nothing.
        ask_first = candidate.costly or (self._choice and candidate.path is None and not known)
        asked = ask_first and candidate.blob is not None
        if candidate.blob is not None and asked:
            algorithm = self._algorithm(candidate, candidate.blob)
            if algorithm is None:
                return None
            self.offered.append(candidate.label)
            answer = self._exchange.auth.offer_key(candidate.blob, algorithm, self._exchange.deadline.remaining())
            if isinstance(answer, Success | Failure):
                return answer
        signer = candidate.signer or self._unlock(candidate)
        algorithm = self._algorithm(candidate, signer.blob) if signer is not None else None
        if signer is None or algorithm is None:
            return None
        if not asked:
            self.offered.append(candidate.label)
        self._last = signer.blob
        try:
            with self._exchange.deadline.paused() if candidate.path is None else nullcontext():
                proof = self._exchange.auth.proof(signer, algorithm)
        except (OSError, ValueError) as error:
            self.notes.append(f"{candidate.label}: {error}")
            return None
        return self._exchange.auth.prove(proof, self._exchange.deadline.remaining())

    def _algorithm(self, candidate: Candidate, blob: bytes) -> str | None:
        wants = self._exchange.transport.server_extensions.get("server-sig-algs", b"").decode("ascii", "replace")
        algorithm = keys.signature_algorithm(ssh_wire.key_type(blob), tuple(wants.split(",")) if wants else ())
        if algorithm is None:
            self.notes.append(f"{candidate.label}: the server wants RSA with SHA-1, which is not safe any more")
        return algorithm

    def _unlock(self, candidate: Candidate) -> Signer | None:
        """Open the candidate's file, asking for its passphrase where it has one."""
        key = None
        if candidate.path is not None:
            try:
                key = self._open(candidate.path)
            except KeyFileError as error:
                self.notes.append(f"{candidate.path}: {error}")
                return None
        if key is None:
            self.notes.append(f"{candidate.path}: its passphrase was not given")
            return None
        certificate = candidate.blob is not None and candidate.blob != key.blob
        return identities.Certified(key, candidate.blob) if certificate and candidate.blob is not None else key

    def _open(self, path: str) -> PrivateKey | None:
        memory = self._exchange.memory
        key: PrivateKey | None
        try:
            key = memory.key(path) or keys.load(path, None)
        except PassphraseError:
            with self._exchange.asking():
                key = memory.key(path) or self._ask_passphrase(path)
        if key is not None:
            memory.keep_key(path, key)
        return key

    def _ask_passphrase(self, path: str) -> PrivateKey | None:
        for again in (False, *(True,) * (PASSPHRASE_TRIES - 1)):
            passphrase = self._exchange.prompter.passphrase(path, again=again)
            if passphrase is None:
                return None
            try:
                return keys.load(path, passphrase)
            except PassphraseError:
                continue
        raise KeyFileError("its passphrase was wrong")
