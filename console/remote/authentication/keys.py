"""Private keys in files: what they are without opening them, and signing with them."""

from __future__ import annotations

import base64
import binascii
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from console.remote.ssh import ssh_wire

_MAGIC = b"openssh-key-v1\0"
_MAX_BYTES = 1 << 18


class KeyFileError(Exception):
    """A key file cannot be used; the text says why, without its path."""


class PassphraseError(Exception):
    """A passphrase is wanted, or was wrong."""


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A private key file, looked at without its passphrase.

    Attributes:
        path: As it was given.
        blob: The public key; None where only the passphrase would tell.
        encrypted: A passphrase is needed to sign.
        private: False where there is only the ``.pub`` half (the agent may hold the other).
    """

    path: str
    blob: bytes | None
    encrypted: bool = False
    private: bool = True


def inspect(path: str) -> KeyFile | None:
    """What the file holds; None where there is no such file.

    Raises:
        KeyFileError: It is no key, or unreadable, or others can read it (ssh ignores it then, too).
    """
    try:
        data = _read(path)
    except FileNotFoundError:
        blob = read_public(path + ".pub")
        return KeyFile(path, blob, private=False) if blob else None
    except OSError as error:
        raise KeyFileError(error.strerror or str(error)) from error
    if not data.lstrip().startswith(b"-----BEGIN"):
        blob = _public_blob(data)
        if blob is None:
            raise KeyFileError("not a private key")
        return KeyFile(path, blob, private=False)
    status = Path(path).stat()
    if status.st_uid == os.getuid() and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeyFileError("others may read it, so ssh would ignore it too: chmod 600")
    if b"BEGIN OPENSSH PRIVATE KEY" in data[:200]:
        return _inspect_openssh(path, data)
    encrypted = b"ENCRYPTED" in data[:400]
    blob = read_public(path + ".pub") if encrypted else load(path, None).blob
    return KeyFile(path, blob, encrypted=encrypted)


def _inspect_openssh(path: str, data: bytes) -> KeyFile:
    body = b"".join(line for line in data.splitlines() if line and not line.startswith(b"-----"))
    try:
        raw = base64.b64decode(body)
        if not raw.startswith(_MAGIC):
            raise KeyFileError("not a private key")
        reader = ssh_wire.Reader(raw[len(_MAGIC) :])
        cipher, _kdf, _options, count = reader.text(), reader.string(), reader.string(), reader.uint32()
        if count != 1:
            raise KeyFileError(f"holds {count} keys, and only one is supported")
        return KeyFile(path, reader.string(), encrypted=cipher != "none")
    except (binascii.Error, ssh_wire.WireError) as error:
        raise KeyFileError("damaged") from error


def read_public(path: str) -> bytes | None:
    """The key or certificate in a ``.pub`` file; None where there is none."""
    try:
        return _public_blob(_read(path))
    except OSError:
        return None


def _public_blob(data: bytes) -> bytes | None:
    for line in data.splitlines():
        words = line.split()
        if len(words) < 2 or words[0].startswith(b"#"):
            continue
        try:
            blob = base64.b64decode(words[1], validate=True)
            if ssh_wire.key_type(blob).encode() == words[0]:
                return blob
        except (binascii.Error, ssh_wire.WireError):
            continue
    return None


def _read(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(_MAX_BYTES)


class PrivateKey:
    """A private key in memory."""

    def __init__(self, key: object, blob: bytes) -> None:
        self._key = key
        self.blob = blob

    def sign(self, data: bytes, algorithm: str) -> bytes:
        """See ``userauth.Signer.sign``."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        key = self._key
        if isinstance(key, ed25519.Ed25519PrivateKey):
            return ssh_wire.string("ssh-ed25519") + ssh_wire.string(key.sign(data))
        if isinstance(key, ec.EllipticCurvePrivateKey):
            digest = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}[key.curve.key_size]
            r, s = decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
            name = f"ecdsa-sha2-nistp{key.curve.key_size}"
            return ssh_wire.string(name) + ssh_wire.string(ssh_wire.mpint(r) + ssh_wire.mpint(s))
        if isinstance(key, rsa.RSAPrivateKey):
            name = algorithm.replace("-cert-v01@openssh.com", "")
            rsa_digest = {"rsa-sha2-256": hashes.SHA256, "rsa-sha2-512": hashes.SHA512}[name]
            return ssh_wire.string(name) + ssh_wire.string(key.sign(data, padding.PKCS1v15(), rsa_digest()))
        raise ValueError("a key of a type that cannot sign")


def load(path: str, passphrase: str | None) -> PrivateKey:
    """Open a private key.

    Raises:
        PassphraseError: It needs one, or another one.
        KeyFileError: It cannot be used at all.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    try:
        data = _read(path)
    except OSError as error:
        raise KeyFileError(error.strerror or str(error)) from error
    secret = None if passphrase is None else passphrase.encode()
    openssh = b"BEGIN OPENSSH PRIVATE KEY" in data[:200]
    loader = serialization.load_ssh_private_key if openssh else serialization.load_pem_private_key
    try:
        key = loader(data, secret)
    except TypeError as error:  # "Password was not given but private key is encrypted", or the opposite
        if passphrase is None:
            raise PassphraseError("encrypted") from error
        return load(path, None)
    except UnsupportedAlgorithm as error:
        raise KeyFileError(f"cannot be read: {error}") from error
    except ValueError as error:
        if passphrase is not None:
            raise PassphraseError("wrong passphrase") from error
        raise KeyFileError("damaged, or of a kind that is not supported") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise KeyFileError("of a kind that is not supported (DSA is not, for one)")
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return PrivateKey(key, base64.b64decode(public.split()[1]))


def signature_algorithm(key_type: str, server_wants: tuple[str, ...]) -> str | None:
    """The algorithm to sign with, given the server's "server-sig-algs" (empty where it said nothing).

    RSA keys sign with SHA-2 (RFC 8332). None where the server takes only SHA-1.
    """
    if key_type not in ("ssh-rsa", "ssh-rsa-cert-v01@openssh.com"):
        return key_type
    for name in ("rsa-sha2-512", "rsa-sha2-256"):
        if not server_wants or name in server_wants:
            return key_type.replace("ssh-rsa", name)
    return None
