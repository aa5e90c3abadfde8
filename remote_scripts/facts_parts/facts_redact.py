"""A server's command line without the secrets in it.

Triton takes some on its command line: the value after a restricted API's header, a Redis cache's password. They are
visible in ``ps`` there; they do not leave the droplet by us.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

HIDDEN = "***"
_RESTRICTED = re.compile(r"^(--(?:http-restricted-api|grpc-restricted-protocol))(=?)(.*)$", re.DOTALL)
_RULE = re.compile(r"^([^:=]*:[^=]*=).*$", re.DOTALL)
_NAMED = re.compile(
    r"(?i)([\w.-]*(?:pass(?:word|phrase|wd)?|secret|token|api[_-]?key|access[_-]?key|credential|auth)[\w.-]*\s*[=:]\s*)"
    r"[^,;\s&]+"
)
_USER = re.compile(r"([a-z][a-z0-9+.-]*://)[^/\s@]+@", re.IGNORECASE)
_TOKEN = re.compile(r"\b(?:hf_|do[opr]_v1_|nvapi-|gh[pousr]_|AKIA)[0-9A-Za-z_-]{8,}")


def redacted(arguments: Sequence[str]) -> list[str]:
    """The words of a command line, each secret replaced by ``***``."""
    found: list[str] = []
    rule_follows = False
    for word in arguments:
        restricted = _RESTRICTED.match(word)
        if rule_follows:
            found.append(_rule(word))
            rule_follows = False
        elif restricted:
            rule_follows = not restricted[2]
            found.append(restricted[1] + restricted[2] + (_rule(restricted[3]) if restricted[2] else ""))
        else:
            found.append(_TOKEN.sub(HIDDEN, _USER.sub(rf"\1{HIDDEN}@", _NAMED.sub(rf"\1{HIDDEN}", word))))
    return found


def _rule(text: str) -> str:
    """``categories:header=secret``: what names the categories and the header stays."""
    hidden, count = _RULE.subn(rf"\1{HIDDEN}", text)
    return hidden if count else HIDDEN
