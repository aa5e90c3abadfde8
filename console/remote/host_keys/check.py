"""Whether the server is the one it says it is: its host key against what is known, or a person's word."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from console.domain.telemetry.text import printable
from console.remote.errors import FailureKind, RemoteError
from console.remote.host_keys import host_key_words, known_hosts, ssh_certificate
from console.remote.host_keys.known_hosts import Finding, Marker, Verdict
from console.remote.host_keys.known_hosts_store import KnownHostsStore, bare_name, lookup_name
from console.remote.login import failures
from console.remote.prompts import HostKeyAnswer, HostKeyQuestion, Prompter
from console.remote.ssh import ssh_wire
from console.remote.target import Target

PLAIN_ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
"""What the connection can verify."""

Asking = Callable[[], AbstractContextManager[None]]
"""Around a question: the deadline stands still, and no other question is open."""


class HostKeys:
    """The policy on host keys. For all threads."""

    def __init__(self, app_file: Path) -> None:
        self._store = KnownHostsStore(app_file)

    def algorithms(self, target: Target) -> tuple[str, ...]:
        """What to ask the server for: kinds of key that are known for it come first, as with ssh.

        Otherwise a host that is known by its RSA key alone would show its Ed25519 key, and look unknown.
        Certificates are asked for only where an authority is known for the host.
        """
        lines, name, suffix = self._store.about(target).lines, lookup_name(target), ssh_certificate.SUFFIX
        certified = bool(known_hosts.authorities(lines, name))
        known = {
            line.key_type for line in lines if line.marker is Marker.HOST and known_hosts.matches(line.hosts, name)
        }
        once = self._store.once(target)
        if once is not None:
            known.add(ssh_wire.key_type(once))

        def rank(algorithm: str) -> int:
            if algorithm.endswith(suffix):
                return 0
            return 1 if _key_type(algorithm) in known else 2

        wanted = target.host_key_algorithms or (*(a + suffix for a in PLAIN_ALGORITHMS), *PLAIN_ALGORITHMS)
        usable = [
            a for a in wanted if a in PLAIN_ALGORITHMS or (certified and a.removesuffix(suffix) in PLAIN_ALGORITHMS)
        ]
        return tuple(sorted(usable or PLAIN_ALGORITHMS, key=rank))

    def verify(self, target: Target, blob: bytes, prompter: Prompter, asking: Asking) -> None:
        """Accept the key that the server proved to hold, or raise.

        Args:
            target: Who it should be.
            blob: Its key or certificate.
            prompter: Asked about an unknown key where the settings say "ask".
            asking: Held around the question.

        Raises:
            RemoteError: HOST_KEY_UNKNOWN, HOST_KEY_CHANGED or HOST_KEY_REVOKED; SETTINGS where the answer cannot be
                kept, or RevokedHostKeys cannot be read; PROTOCOL where the key makes no sense.
        """
        doubt = None
        try:
            if ssh_certificate.is_certificate(blob):
                certificate = ssh_certificate.parse(blob)
                doubt = self._doubt(target, certificate)
                if doubt is None:
                    return
                blob = certificate.key_blob  # as ssh does: then the plain key has to be known
            finding = self._check(target, blob)
        except ssh_wire.WireError as error:
            raise RemoteError(FailureKind.PROTOCOL, f"{target.name} shows a broken host key: {error}.") from error
        if finding.verdict is Verdict.UNKNOWN:
            with asking():
                finding = self._check(target, blob)  # another login may have been answered meanwhile
                if finding.verdict is Verdict.UNKNOWN:
                    self._decide(target, blob, finding, prompter, doubt)
                    return
        if finding.verdict is Verdict.REVOKED:
            raise host_key_words.revoked(target, blob, finding.lines[0].where)
        if finding.verdict is Verdict.CHANGED:
            raise host_key_words.changed(target, blob, finding.lines)

    def _check(self, target: Target, blob: bytes) -> Finding:
        lines = self._store.about(target).lines
        finding = known_hosts.check_key(lines, lookup_name(target), bare_name(target), blob)
        if finding.verdict is not Verdict.REVOKED and _in_revoked_file(target, blob):
            raise host_key_words.revoked(target, blob, target.options["revokedhostkeys"])
        once = self._store.once(target)
        if finding.verdict is Verdict.UNKNOWN and once is not None:
            if once == blob:
                return Finding(Verdict.KNOWN)
            if ssh_wire.key_type(once) == ssh_wire.key_type(blob):
                return Finding(Verdict.CHANGED)
        return finding

    def _doubt(self, target: Target, certificate: ssh_certificate.Certificate) -> str | None:
        """Why a host certificate does not convince; None where it does."""
        lines, name = self._store.about(target).lines, lookup_name(target)
        for blob in (certificate.authority_blob, certificate.key_blob):
            revoked = known_hosts.revocation(lines, name, blob)
            if revoked is not None:
                raise host_key_words.revoked(target, blob, revoked.where)
            if _in_revoked_file(target, blob):
                raise host_key_words.revoked(target, blob, target.options["revokedhostkeys"])
        if not any(line.blob == certificate.authority_blob for line in known_hosts.authorities(lines, name)):
            return "its certificate is signed by an authority that is not known"
        if certificate.kind != ssh_certificate.HOST:
            return "its certificate is a user's, not a host's"
        if not certificate.valid_after <= time.time() < certificate.valid_before:
            return "its certificate is expired or not valid yet"
        host = bare_name(target)
        if certificate.principals and not any(known_hosts.matches(p, host) for p in certificate.principals):
            return f"its certificate is for {printable(', '.join(certificate.principals), 200)}, not for {host}"
        if certificate.critical_options:
            return "its certificate demands what is not understood"
        if not ssh_certificate.signed_by_authority(certificate):
            return "its certificate's signature is wrong"
        return None

    def _decide(self, target: Target, blob: bytes, finding: Finding, prompter: Prompter, doubt: str | None) -> None:
        answer = HostKeyAnswer.REFUSE
        if target.strict_host_key_checking == "no":
            return
        if target.strict_host_key_checking == "accept-new":
            answer = HostKeyAnswer.ALWAYS
        elif target.strict_host_key_checking == "ask":
            answer = prompter.host_key(
                HostKeyQuestion(
                    failures.who(target), ssh_wire.key_type(blob), ssh_wire.fingerprint(blob), finding.other_types
                )
            )
        if answer is HostKeyAnswer.REFUSE:
            raise host_key_words.unknown(target, blob, doubt, self._store.about(target).notes)
        if answer is HostKeyAnswer.ONCE:
            self._store.keep_once(target, blob)
            return
        try:
            self._store.keep(target, blob)
        except OSError as error:
            raise RemoteError(
                FailureKind.SETTINGS,
                f"The host key of {target.name} cannot be kept in {self._store.app_file}: {error.strerror}.",
                hint="Make that folder writable, or accept the key for this session only.",
            ) from error


def _key_type(algorithm: str) -> str:
    return "ssh-rsa" if algorithm.startswith("rsa-sha2-") else algorithm


def _in_revoked_file(target: Target, blob: bytes) -> bool:
    """Whether ssh_config's RevokedHostKeys names the key."""
    file = target.options.get("revokedhostkeys", "none")
    if file == "none":
        return False
    try:
        data = Path(file).expanduser().read_bytes()
    except OSError as error:
        raise RemoteError(
            FailureKind.SETTINGS,
            f"{file}, which RevokedHostKeys names, cannot be read: {error.strerror or error}.",
            hint="Make it readable, or take RevokedHostKeys out of ssh_config.",
        ) from error
    if data.startswith(b"SSHKRL\n\0"):
        raise RemoteError(
            FailureKind.SETTINGS,
            f"{file}, which RevokedHostKeys names, is a binary KRL, which this program cannot read.",
            hint="Name a text file with one public key a line instead.",
        )
    return any(known_hosts.holds_key(line, blob) for line in data.splitlines())
