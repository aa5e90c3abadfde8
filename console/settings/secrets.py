"""Secrets do not belong in the settings: they are recognised, refused, and never repeated in a message."""

from __future__ import annotations

import re

_SSH = (
    "nothing to set: it is asked for when it is needed and kept in memory only; "
    "a key's passphrase is best held by ssh-agent"
)
_PROVIDER = "it belongs in the environment variable DIGITALOCEAN_TOKEN"
_HUGGING_FACE = "it belongs in the environment variable HF_TOKEN"
_ELSEWHERE = "it belongs in an environment variable or a password manager"

_KEYS = (
    (re.compile(r"pass(word|phrase|wd)?$|^pin$"), _SSH),
    (re.compile(r"^(hf|hugging_?face)_?(api_?)?(token|key)$"), _HUGGING_FACE),
    (re.compile(r"^(do|digital_?ocean)_?(api_?|access_?)?(token|key)$"), _PROVIDER),
    (re.compile(r"^private_?key$"), "name the key's file under identity"),
    (re.compile(r"(^|_)(token|secret|credentials?|api_?key|access_?key|secret_?key)s?$"), _ELSEWHERE),
)

_VALUES = (
    (re.compile(r"\bdo[opr]_v1_[0-9a-zA-Z]{8}"), "a DigitalOcean token", _PROVIDER),
    (re.compile(r"\bhf_[0-9a-zA-Z]{8}"), "a Hugging Face token", _HUGGING_FACE),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"), "a private key", "name the key's file under identity"),
    (re.compile(r"\b(nvapi-|gh[pousr]_|github_pat_|glpat-|xox[abp]-|AKIA)[0-9a-zA-Z_-]{8}"), "a token", _ELSEWHERE),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@"), "a password in an address", _SSH),
    (re.compile(r"(^|,)[^@,\s/]*:[^@\s,]*@"), "a password in an address", _SSH),
)


def secret_key(key: str) -> str | None:
    """Where the secret belongs that a key of this name asks for; None for any other key."""
    plain = key.lower().replace("-", "_")
    return next((place for pattern, place in _KEYS if pattern.search(plain)), None)


def secret_value(value: str) -> tuple[str, str] | None:
    """What kind of secret a value looks like and where it belongs; None for any other value."""
    return next(((kind, place) for pattern, kind, place in _VALUES if pattern.search(value)), None)


def hidden(value: str) -> bool:
    """True where a value is not to be repeated in a message: what stands between ":" and "@" may be a password."""
    return ":" in value.rpartition("@")[0] or secret_value(value) is not None
