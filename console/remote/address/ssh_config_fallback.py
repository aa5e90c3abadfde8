"""ssh_config by paramiko's reader, where OpenSSH's client is not installed.

It does not know Include, and takes Match criteria that it does not know for true: what it cannot read truly is
refused with the line, never guessed.
"""

from __future__ import annotations

import getpass
import re
from pathlib import Path

from console.remote.address.ssh_config import Answer, Wish
from console.remote.errors import FailureKind, RemoteError

_UNKNOWN_MATCH = re.compile(r"^\s*match\b.*\b(tagged|localnetwork|version|sessiontype|command)\b", re.IGNORECASE)
_INCLUDE = re.compile(r"^\s*include\b", re.IGNORECASE)
DEFAULT_IDENTITIES = ("~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519")
DEFAULT_KNOWN_HOSTS = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
DEFAULT_GLOBAL_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"


def read(wish: Wish) -> Answer:
    """Resolve a name.

    Raises:
        RemoteError: SETTINGS: a file cannot be read, or says what only ssh understands.
    """
    from paramiko.config import SSHConfig

    files = [wish.config] if wish.config is not None else ["~/.ssh/config", "/etc/ssh/ssh_config"]
    options: dict[str, tuple[str, ...]] = {}
    for file in files:
        text = _text(file, required=wish.config is not None)
        try:
            found = SSHConfig.from_text(text).lookup(wish.host)
        except Exception as error:
            raise RemoteError(FailureKind.SETTINGS, f"{file} cannot be read: {error}.") from error
        for name, value in found.items():
            values = tuple(value) if isinstance(value, list) else (value,)
            if name == "identityfile":
                options[name] = (*options.get(name, ()), *values)
            else:
                options.setdefault(name, values)
    return Answer(_with_wish(options, wish), "ssh_config")


def _text(file: str, *, required: bool) -> str:
    path = Path(file).expanduser()
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        if not required and isinstance(error, FileNotFoundError):
            return ""
        raise RemoteError(FailureKind.SETTINGS, f"{file} cannot be read: {error.strerror}.") from error
    if path == Path("/etc/ssh/ssh_config"):
        # The distributions' own file includes an empty folder.
        text = "\n".join(line for line in text.splitlines() if not _INCLUDE.match(line))
    for number, line in enumerate(text.splitlines(), 1):
        if _INCLUDE.match(line) or _UNKNOWN_MATCH.match(line):
            raise RemoteError(
                FailureKind.SETTINGS,
                f"{file}:{number}: only OpenSSH understands this line: {line.strip()}",
                hint="Install OpenSSH's client (`ssh` on the PATH), and it is asked.",
            )
    return text


def _with_wish(options: dict[str, tuple[str, ...]], wish: Wish) -> dict[str, tuple[str, ...]]:
    defaults = {
        "hostname": wish.host,
        "user": getpass.getuser(),
        "port": "22",
        "userknownhostsfile": DEFAULT_KNOWN_HOSTS,
        "globalknownhostsfile": DEFAULT_GLOBAL_KNOWN_HOSTS,
        "stricthostkeychecking": "ask",
    }
    merged = {name: (value,) for name, value in defaults.items()} | options
    if wish.user is not None:
        merged["user"] = (wish.user,)
    if wish.port is not None:
        merged["port"] = (str(wish.port),)
    if wish.jump is not None:
        merged["proxyjump"] = (wish.jump,)
    merged["identityfile"] = (*wish.identities, *options.get("identityfile", ())) or DEFAULT_IDENTITIES
    return merged
