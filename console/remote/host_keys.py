"""Whether the server is the one it says it is: its host key against what is known, or a person's word."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from console.domain.telemetry.text import printable
from console.remote import known_hosts, ssh_certificate, ssh_wire
from console.remote.errors import FailureKind, RemoteError
from console.remote.known_hosts import Finding, Line, Verdict
from console.remote.prompts import HostKeyAnswer, HostKeyQuestion, Prompter
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
    """What this process knows of host keys. For all threads."""

    def __init__(self, app_file: Path) -> None:
        self._app_file = app_file
        self._lock = threading.Lock()
        self._once: dict[str, bytes] = {}
        self._cache: dict[str, tuple[tuple[int, int, int], list[Line]]] = {}

    def lines(self, target: Target) -> list[Line]:
        """Every line of the user's, the system's and the app's files, read again only where a file changed."""
        found: list[Line] = []
        for file in (*target.known_hosts_files, str(self._app_file)):
            try:
                status = Path(file).stat()
            except OSError:
                continue
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            with self._lock:
                cached = self._cache.get(file)
            if cached is None or cached[0] != stamp:
                cached = (stamp, known_hosts.read([file])[0])
                with self._lock:
                    self._cache[file] = cached
            found += cached[1]
        return found

    def algorithms(self, target: Target) -> tuple[str, ...]:
        """What to ask the server for: kinds of key that are known for it come first, as with ssh.

        Otherwise a host that is known by its RSA key alone would show its Ed25519 key, and look unknown.
        """
        lines, name = self.lines(target), lookup_name(target)
        wanted = target.host_key_algorithms or (
            *(a + ssh_certificate.SUFFIX for a in PLAIN_ALGORITHMS),
            *PLAIN_ALGORITHMS,
        )
        certified = bool(known_hosts.authorities(lines, name))
        known = {
            line.key_type
            for line in lines
            if line.marker is known_hosts.Marker.HOST and known_hosts.matches(line.hosts, name)
        }
        once = self._once.get(name)
        if once is not None:
            known.add(ssh_wire.key_type(once))

        def rank(algorithm: str) -> int:
            if algorithm.endswith(ssh_certificate.SUFFIX):
                return 0
            return 1 if _key_type(algorithm) in known else 2

        usable = [
            a
            for a in wanted
            if a in PLAIN_ALGORITHMS or (certified and a.removesuffix(ssh_certificate.SUFFIX) in PLAIN_ALGORITHMS)
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
            RemoteError: HOST_KEY_UNKNOWN, HOST_KEY_CHANGED or HOST_KEY_REVOKED.
        """
        doubt = None
        if ssh_certificate.is_certificate(blob):
            certificate = ssh_certificate.parse(blob)
            doubt = self._doubt(target, certificate)
            if doubt is None:
                return
            blob = certificate.key_blob  # as ssh does: then the plain key has to be known
        finding = self._check(target, blob)
        if finding.verdict is Verdict.UNKNOWN:
            with asking():
                finding = self._check(target, blob)  # another login may have been answered meanwhile
                if finding.verdict is Verdict.UNKNOWN:
                    self._decide(target, blob, finding, prompter, doubt)
                    return
        if finding.verdict is Verdict.REVOKED:
            raise _revoked(target, blob, finding.lines[0].where)
        if finding.verdict is Verdict.CHANGED:
            raise self._changed(target, blob, finding)

    def _check(self, target: Target, blob: bytes) -> Finding:
        name, bare = lookup_name(target), (target.host_key_alias or target.host).lower()
        finding = known_hosts.check_key(self.lines(target), name, bare, blob)
        if finding.verdict is not Verdict.REVOKED and _in_revoked_file(target, blob):
            raise _revoked(target, blob, target.options["revokedhostkeys"])
        once = self._once.get(name)
        if finding.verdict is Verdict.UNKNOWN and once is not None:
            if once == blob:
                return Finding(Verdict.KNOWN)
            if ssh_wire.key_type(once) == ssh_wire.key_type(blob):
                return Finding(Verdict.CHANGED)
        return finding

    def _doubt(self, target: Target, certificate: ssh_certificate.Certificate) -> str | None:
        """Why a host certificate does not convince; None where it does."""
        lines, name = self.lines(target), lookup_name(target)
        for blob in (certificate.authority_blob, certificate.key_blob):
            revoked = known_hosts.revocation(lines, name, blob)
            if revoked is not None:
                raise _revoked(target, blob, revoked.where)
        if not any(line.blob == certificate.authority_blob for line in known_hosts.authorities(lines, name)):
            return "its certificate is signed by an authority that is not known"
        if certificate.kind != ssh_certificate.HOST:
            return "its certificate is a user's, not a host's"
        now = time.time()
        if not certificate.valid_after <= now < certificate.valid_before:
            return "its certificate is expired or not valid yet"
        host = (target.host_key_alias or target.host).lower()
        if certificate.principals and not any(known_hosts.matches(p, host) for p in certificate.principals):
            return f"its certificate is for {printable(', '.join(certificate.principals))}, not for {host}"
        if certificate.critical_options:
            return "its certificate demands what is not understood"
        if not ssh_certificate.signed_by_authority(certificate):
            return "its certificate's signature is wrong"
        return None

    def _decide(self, target: Target, blob: bytes, finding: Finding, prompter: Prompter, doubt: str | None) -> None:
        name = lookup_name(target)
        if target.strict_host_key_checking == "no":
            return
        answer = HostKeyAnswer.REFUSE
        if target.strict_host_key_checking == "accept-new":
            answer = HostKeyAnswer.ALWAYS
        elif target.strict_host_key_checking == "ask":
            label = target.name if target.name in target.address else f"{target.name}, {target.address}"
            answer = prompter.host_key(
                HostKeyQuestion(label, ssh_wire.key_type(blob), ssh_wire.fingerprint(blob), finding.other_types)
            )
        if answer is HostKeyAnswer.REFUSE:
            raise _unknown(target, blob, doubt)
        with self._lock:
            self._once[name] = blob
            if answer is HostKeyAnswer.ALWAYS:
                try:
                    known_hosts.add(self._app_file, name, blob)
                except OSError as error:
                    raise RemoteError(
                        FailureKind.SETTINGS,
                        f"The host key of {target.name} cannot be kept in {self._app_file}: {error.strerror}.",
                        hint="Make that folder writable, or accept the key for this session only.",
                    ) from error

    def _changed(self, target: Target, blob: bytes, finding: Finding) -> RemoteError:
        name = lookup_name(target)
        offered = f"{ssh_wire.key_type(blob)} {ssh_wire.fingerprint(blob)}"
        if not finding.lines:
            return RemoteError(
                FailureKind.HOST_KEY_CHANGED,
                f"{target.name} shows another host key than the one accepted earlier in this session: {offered}.",
                hint="Somebody may be listening in. Do not log in before you know why; then restart this program.",
            )
        known = "; ".join(f"{line.where} has {ssh_wire.fingerprint(line.blob)}" for line in finding.lines)
        commands = []
        for line in finding.lines:
            if line.removable():
                commands.append(f"ssh-keygen -f {shlex.quote(line.file)} -R {shlex.quote(name)}")
            else:
                commands.append(f"edit {line.where}, which a pattern matches")
        return RemoteError(
            FailureKind.HOST_KEY_CHANGED,
            f"The host key of {target.name} ({target.address}) has changed: it shows {offered}, but {known}.",
            hint="Cloud addresses are reused: if this is another machine now, take the old key away with\n"
            + "\n".join(f"  {command}" for command in dict.fromkeys(commands))
            + "\nIf it should be the same machine, somebody may be listening in: do not log in.",
        )


def lookup_name(target: Target) -> str:
    """The name under which known_hosts keeps this target."""
    return known_hosts.lookup_name(target.host, target.port, target.host_key_alias)


def _key_type(algorithm: str) -> str:
    return "ssh-rsa" if algorithm.startswith("rsa-sha2-") else algorithm


def _in_revoked_file(target: Target, blob: bytes) -> bool:
    """Whether ssh_config's RevokedHostKeys names the key."""
    file = target.options.get("revokedhostkeys", "none")
    if file == "none":
        return False
    try:
        data = Path(file).read_bytes()
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


def _unknown(target: Target, blob: bytes, doubt: str | None) -> RemoteError:
    because = f" ({doubt})" if doubt else ""
    return RemoteError(
        FailureKind.HOST_KEY_UNKNOWN,
        f"The host key of {target.name} ({target.address}) is not known{because}:"
        f" {ssh_wire.key_type(blob)} {ssh_wire.fingerprint(blob)}.",
        hint="Compare it with what the droplet's own console shows for"
        " `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`, then connect from a terminal and accept it.",
    )


def _revoked(target: Target, blob: bytes, where: str) -> RemoteError:
    return RemoteError(
        FailureKind.HOST_KEY_REVOKED,
        f"The host key of {target.name} ({target.address}), {ssh_wire.fingerprint(blob)}, is revoked in {where}.",
        hint="Whoever revoked it had a reason. The droplet needs a new host key.",
    )
