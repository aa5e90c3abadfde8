"""OpenSSH certificates, of users and of hosts (PROTOCOL.certkeys), and signatures by public keys."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from console.remote.ssh import ssh_wire

SUFFIX = "-cert-v01@openssh.com"
USER, HOST = 1, 2
FOREVER = (1 << 64) - 1

_PUBLIC_FIELDS = {"ssh-ed25519": 1, "ssh-rsa": 2, "ecdsa-sha2": 2, "sk-ssh-ed25519": 2, "sk-ecdsa-sha2": 3}
"""How many strings make up the public key inside, by the beginning of the type."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a certificate says; nothing of it is verified yet.

    Attributes:
        key_blob: The plain public key it is about.
        kind: ``USER`` or ``HOST``.
        key_id: The authority's name for it, not safe to print.
        principals: Users or host names; empty for any.
        valid_after: Seconds since the epoch.
        valid_before: Likewise, exclusive.
        critical_options: Names of what a verifier must understand.
        authority_blob: The public key of who signed.
        signature: By that key ...
        signed: ... over these bytes.
    """

    key_blob: bytes
    kind: int
    key_id: str
    principals: tuple[str, ...]
    valid_after: int
    valid_before: int
    critical_options: tuple[str, ...]
    authority_blob: bytes
    signature: bytes
    signed: bytes


def is_certificate(blob: bytes) -> bool:
    """Whether a key blob is a certificate."""
    return ssh_wire.key_type(blob).endswith(SUFFIX)


def plain_type(key_type: str) -> str:
    """The type of the key inside a certificate of that type; a plain type as it is."""
    if not key_type.endswith(SUFFIX):
        return key_type
    name = key_type[: -len(SUFFIX)]
    return f"{name}@openssh.com" if name.startswith("sk-") else name


def parse(blob: bytes) -> Certificate:
    """Read a certificate.

    Raises:
        WireError: It is none, or of a type that is not known.
    """
    reader = ssh_wire.Reader(blob)
    key_type = reader.text()
    prefix = next((p for p in sorted(_PUBLIC_FIELDS, key=len, reverse=True) if key_type.startswith(p)), None)
    if prefix is None or not key_type.endswith(SUFFIX):
        raise ssh_wire.WireError("not a certificate of a known type")
    reader.string()  # the nonce
    fields = b"".join(ssh_wire.string(reader.string()) for _ in range(_PUBLIC_FIELDS[prefix]))
    reader.take(8)  # the serial number
    kind, key_id = reader.uint32(), reader.text()
    principals = _strings(reader.string())
    valid_after, valid_before = (int.from_bytes(reader.take(8), "big") for _ in range(2))
    critical = _strings(reader.string())[::2]
    reader.string()  # extensions may be ignored
    reader.string()  # reserved
    authority, signature = reader.string(), reader.string()
    return Certificate(
        key_blob=ssh_wire.string(plain_type(key_type)) + fields,
        kind=kind,
        key_id=key_id,
        principals=principals,
        valid_after=valid_after,
        valid_before=valid_before,
        critical_options=critical,
        authority_blob=authority,
        signature=signature,
        signed=blob[: len(blob) - len(ssh_wire.string(signature)) - len(reader.rest())],
    )


def _strings(data: bytes) -> tuple[str, ...]:
    reader, found = ssh_wire.Reader(data), []
    while not reader.at_end:
        found.append(reader.text())
    return tuple(found)


def signed_by_authority(certificate: Certificate) -> bool:
    """Whether the authority named in the certificate really signed it. SHA-1 signatures do not count."""
    if is_certificate(certificate.authority_blob):
        return False
    return verify(certificate.authority_blob, certificate.signature, certificate.signed)


def verify(key_blob: bytes, signature: bytes, data: bytes) -> bool:
    """Whether ``signature`` (as SSH writes it) over ``data`` was made by this public key."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        reader = ssh_wire.Reader(signature)
        algorithm, value = reader.text(), reader.string()
        key_type = ssh_wire.key_type(key_blob)
        key = load_ssh_public_key(key_type.encode() + b" " + base64.b64encode(key_blob))
        if isinstance(key, ed25519.Ed25519PublicKey) and algorithm == key_type:
            key.verify(value, data)
        elif isinstance(key, ec.EllipticCurvePublicKey) and algorithm == key_type:
            numbers = ssh_wire.Reader(value)
            r, s = (int.from_bytes(numbers.string(), "big") for _ in range(2))
            digest = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}[key.curve.key_size]
            key.verify(encode_dss_signature(r, s), data, ec.ECDSA(digest))
        elif isinstance(key, rsa.RSAPublicKey) and algorithm in ("rsa-sha2-256", "rsa-sha2-512"):
            key.verify(
                value, data, padding.PKCS1v15(), hashes.SHA256() if algorithm.endswith("256") else hashes.SHA512()
            )
        else:
            return False
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, KeyError):
        return False
    return True
