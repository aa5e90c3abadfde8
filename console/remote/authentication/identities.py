"""Which keys to offer, in ssh's order: certificates, the agent's (those named first), then those in files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from console.domain.telemetry.text import printable
from console.remote.authentication import keys
from console.remote.authentication.agent import Agent, AgentKey, AgentSigner
from console.remote.authentication.keys import KeyFile, KeyFileError
from console.remote.authentication.memory import Memory
from console.remote.authentication.userauth import Signer
from console.remote.host_keys import ssh_certificate
from console.remote.ssh import ssh_wire
from console.remote.target import Target

_DEFAULT_NAMES = frozenset(
    f"id_{kind}" for kind in ("rsa", "ecdsa", "ecdsa_sk", "ed25519", "ed25519_sk", "xmss", "dsa")
)
"""Identity files that ssh names by itself: nobody misses one that is not there."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A key that can be offered.

    Attributes:
        blob: The key or certificate to send; None where only a passphrase would tell.
        label: For people: type, fingerprint, where it is held.
        signer: What signs with it; None where the file must be opened first.
        path: The private key's file, where it is not the agent that holds it.
        costly: Signing asks something of a person (a passphrase, a touch), so the server is asked first.
    """

    blob: bytes | None
    label: str
    signer: Signer | None = None
    path: str | None = None
    costly: bool = False


@dataclass(slots=True)
class Identities:
    """All candidates, and notes for people on what cannot be offered."""

    candidates: list[Candidate] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def collect(target: Target, agent: Agent | None, memory: Memory) -> Identities:
    """Everything that may be offered to ``target``, best first."""
    found = Identities()
    held = _held(agent, found)
    files = _files(target, found)
    by_blob = {key.blob: key for key in held}
    wanted = {file.blob for file in files}
    certificates: list[Candidate] = []
    named: list[Candidate] = []
    on_disk: list[Candidate] = []
    for file in files:
        agent_key = by_blob.get(file.blob) if file.blob is not None else None
        if agent is not None and agent_key is not None:
            plain = _from_agent(agent, agent_key)
            named.append(plain)
        elif not file.private:
            found.notes.append(f"{file.path}.pub: the agent does not hold its private key")
            continue
        elif file.blob is not None and ssh_wire.key_type(file.blob).startswith("sk-"):
            found.notes.append(f"{file.path}: a hardware key works through the agent alone: ssh-add {file.path}")
            continue
        else:
            plain = _from_file(file, memory)
            on_disk.append(plain)
        certificates += _certified(target, file, plain, found)
    others = [
        _from_agent(agent, key)
        for key in held
        if agent is not None
        and key.blob not in wanted
        and (not target.identities_only or _inner(key.blob) in wanted)
    ]
    if target.options.get("pkcs11provider", "none") != "none":
        found.notes.append(f"PKCS11Provider is not supported: ssh-add -s {target.options['pkcs11provider']}")
    seen: set[bytes] = set()
    for candidate in certificates + named + others + on_disk:
        if candidate.blob is None or candidate.blob not in seen:
            found.candidates.append(candidate)
            seen.update([candidate.blob] if candidate.blob is not None else [])
    last = memory.accepted(target)
    found.candidates.sort(key=lambda candidate: candidate.blob is None or candidate.blob != last)
    return found


def _held(agent: Agent | None, found: Identities) -> list[AgentKey]:
    if agent is None:
        return []
    try:
        return agent.keys()
    except OSError as error:
        found.notes.append(str(error))
        return []


def _files(target: Target, found: Identities) -> list[KeyFile]:
    files = []
    for path in target.identity_files:
        try:
            file = keys.inspect(path)
        except (KeyFileError, OSError) as error:
            found.notes.append(f"{path}: {error}")
            continue
        if file is not None:
            files.append(file)
        elif Path(path).name not in _DEFAULT_NAMES:
            found.notes.append(f"{path}: there is no such file")
    return files


def _from_agent(agent: Agent, key: AgentKey) -> Candidate:
    label = f"{describe(key.blob)} (agent, {printable(key.comment, 60)})" if key.comment else describe(key.blob)
    hardware = ssh_wire.key_type(key.blob).startswith("sk-")
    return Candidate(key.blob, label, AgentSigner(agent, key.blob, key.blob), costly=hardware)


def _from_file(file: KeyFile, memory: Memory) -> Candidate:
    opened = memory.key(file.path)
    label = f"{describe(file.blob)} ({file.path})" if file.blob is not None else file.path
    return Candidate(file.blob, label, opened, file.path, costly=file.encrypted and opened is None)


def _certified(target: Target, file: KeyFile, plain: Candidate, found: Identities) -> list[Candidate]:
    """The certificates for a key: FILE-cert.pub, and CertificateFile where it is about this key."""
    if file.blob is None:
        return []
    candidates = []
    for path in dict.fromkeys((f"{file.path}-cert.pub", *target.certificate_files)):
        blob = keys.read_public(path)
        if blob is None or _inner(blob) != file.blob or blob == file.blob:
            continue
        signer = None if plain.signer is None else Certified(plain.signer, blob)
        candidates.append(Candidate(blob, f"{describe(blob)} ({path})", signer, plain.path, plain.costly))
    return candidates


class Certified:
    """A certificate with what signs for it.

    Attributes:
        blob: The certificate.
    """

    def __init__(self, signer: Signer, blob: bytes) -> None:
        self._signer = signer
        self.blob = blob

    def sign(self, data: bytes, algorithm: str) -> bytes:
        """See ``userauth.Signer.sign``."""
        return self._signer.sign(data, algorithm)


def _inner(blob: bytes) -> bytes:
    """The plain key of a certificate; a plain key as it is."""
    try:
        return ssh_certificate.parse(blob).key_blob if ssh_certificate.is_certificate(blob) else blob
    except ssh_wire.WireError:
        return blob


def describe(blob: bytes) -> str:
    """A key as ``ssh-keygen -l`` would name it: "ED25519 SHA256:...", or "ED25519-CERT" for a certificate."""
    key_type = ssh_wire.key_type(blob)
    plain = ssh_certificate.plain_type(key_type).removesuffix("@openssh.com")
    short = plain.replace("ssh-", "").replace("-sha2-nistp", " ").split(" ")[0].upper()
    suffix = "-CERT" if key_type != ssh_certificate.plain_type(key_type) else ""
    return f"{short}{suffix} {ssh_wire.fingerprint(_inner(blob))}"
