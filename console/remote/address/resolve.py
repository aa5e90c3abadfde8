"""From what a person calls a droplet to a Target: everything that a login needs."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from console.domain.telemetry.text import printable
from console.remote.address import ssh_config, ssh_config_fallback
from console.remote.address.ssh_config import Answer, Wish
from console.remote.errors import FailureKind, RemoteError
from console.remote.target import Target

LOCAL = "local"
MAX_HOPS = 10
_STRICT = {
    "true": "yes",
    "yes": "yes",
    "false": "no",
    "no": "no",
    "off": "no",
    "accept-new": "accept-new",
    "ask": "ask",
}
_ADDRESS = re.compile(r"(?:(?P<user>.+)@)?(?:\[(?P<bracketed>[^\]]+)\]|(?P<host>[^:@\[\]]+))(?::(?P<port>\d+))?")


def resolve(
    address: str,
    *,
    name: str | None = None,
    identities: Sequence[str] = (),
    jump: str | None = None,
    config: str | None = None,
    connect_timeout: float | None = None,
) -> Target:
    """Resolve a droplet's address as ssh would.

    Args:
        address: "local", or ``host``, ``user@host``, ``user@host:port``, ``[v6]:port``, where host may be any
            ``Host`` of ssh_config.
        name: What to call it; the address itself where None.
        identities: Private key files to try before those of ssh_config.
        jump: ProxyJump over that of ssh_config; "none" for none.
        config: An ssh_config file to use alone.
        connect_timeout: Seconds; None for ssh_config's ConnectTimeout, and 15 where that says nothing.

    Raises:
        RemoteError: SETTINGS: the address or ssh_config makes no sense; ssh's own words are in it.
    """
    name = address if name is None else name
    if address == LOCAL:
        return Target(name, local=True, source="settings")
    wish = _wish(address, config)
    wish = replace(wish, identities=tuple(_absolute(path) for path in identities), jump=jump)
    target = _resolve(name, wish, depth=0)
    return target if connect_timeout is None else _with_timeout(target, connect_timeout)


def _wish(address: str, config: str | None) -> Wish:
    user, _, host = address.rpartition("@")
    if host.count(":") > 1 and not host.startswith("["):
        return Wish(host, user or None, config=config)
    found = _ADDRESS.fullmatch(address)
    port = int(found["port"]) if found is not None and found["port"] else None
    if found is None or not (port is None or 0 < port < 65536) or not address.isprintable():
        raise RemoteError(
            FailureKind.SETTINGS,
            f"{printable(address)!r} is no address.",
            hint="Give host, user@host, user@host:port, [v6 address]:port, or local.",
        )
    return Wish(found["bracketed"] or found["host"], found["user"], port, config=config)


def _with_timeout(target: Target, seconds: float) -> Target:
    jumps = tuple(replace(jump, connect_timeout=seconds) for jump in target.jumps)
    return replace(target, connect_timeout=seconds, jumps=jumps)


def _resolve(name: str, wish: Wish, depth: int) -> Target:
    if depth > MAX_HOPS:
        raise RemoteError(
            FailureKind.SETTINGS,
            f"{name}: more than {MAX_HOPS} jump hosts, one behind the other.",
            hint="ProxyJump in ssh_config leads in a circle.",
        )
    ssh = ssh_config.ssh_binary()
    answer = ssh_config.ask_ssh(ssh, wish) if ssh is not None else ssh_config_fallback.read(wish)
    target = _target(name, wish, answer)
    jump = answer.one("proxyjump", "none")
    if jump == "none":
        return target
    jumps = _jumps(jump, wish, depth)
    return replace(target, jumps=jumps, proxy_command=None, options={**target.options, "proxyjump": jump})


def _jumps(jump: str, wish: Wish, depth: int) -> tuple[Target, ...]:
    """The chain of ProxyJump. As with ssh, the first hop's own way to it counts, the others' is replaced."""
    hops: list[Target] = []
    for text in jump.split(","):
        hop = _wish(text.strip().removeprefix("ssh://"), wish.config)
        if hops:
            hop = replace(hop, jump="none")
        resolved = _resolve(hop.host, hop, depth + 1)
        hops += [*resolved.jumps, replace(resolved, jumps=())]
    return tuple(hops)


def _target(name: str, wish: Wish, answer: Answer) -> Target:
    host, user, port = answer.one("hostname", wish.host), answer.one("user"), answer.one("port", "22")
    tokens = _tokens(wish.host, host, port, user, answer)

    def paths(values: Sequence[str]) -> tuple[str, ...]:
        expanded = (_expand(value.strip('"'), tokens) for value in values if value and value != "none")
        return tuple(dict.fromkeys(_absolute(path) for path in expanded))

    known = [answer.one(option).split() for option in ("userknownhostsfile", "globalknownhostsfile")]
    proxy = answer.one("proxycommand", "none")
    timeout = answer.one("connecttimeout", "none")
    alias = answer.one("hostkeyalias", "none")
    bind = answer.one("bindaddress", "none")
    methods = _methods(answer)
    return Target(
        name=name,
        host=host,
        port=int(port),
        user=user,
        host_key_alias=None if alias == "none" else alias,
        proxy_command=None if proxy == "none" else _expand(proxy, tokens),
        identity_files=paths(answer.all("identityfile")),
        certificate_files=paths(answer.all("certificatefile")),
        identities_only=answer.one("identitiesonly", "no") == "yes",
        identity_agent=_agent(answer, tokens),
        known_hosts_files=paths(known[0] + known[1]),
        strict_host_key_checking=_STRICT.get(answer.one("stricthostkeychecking", "ask"), "ask"),
        host_key_algorithms=tuple(filter(None, answer.one("hostkeyalgorithms").split(","))),
        preferred_authentications=methods,
        connect_timeout=float(timeout) if timeout.isdigit() and timeout != "0" else 15.0,
        bind_address=None if bind == "none" else bind,
        address_family=answer.one("addressfamily", "any"),
        source=answer.source,
        options={key: values[0] for key, values in answer.options.items() if values},
    )


def _methods(answer: Answer) -> tuple[str, ...]:
    """PreferredAuthentications, without the methods that ssh_config switches off."""
    listed = answer.one("preferredauthentications") or "publickey,keyboard-interactive,password"
    switches = {
        "publickey": answer.one("pubkeyauthentication", "yes"),
        "keyboard-interactive": answer.one("kbdinteractiveauthentication", "yes"),
        "password": answer.one("passwordauthentication", "yes"),
    }
    return tuple(m for m in listed.split(",") if switches.get(m, "no") not in ("no", "false"))


def _agent(answer: Answer, tokens: dict[str, str]) -> str | None:
    """IdentityAgent: a path, ``$VARIABLE``, "SSH_AUTH_SOCK", or "none"; the environment's where nothing is said."""
    value = answer.one("identityagent", "SSH_AUTH_SOCK").strip('"')
    if value == "none":
        return None
    if value == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK") or None
    if value.startswith("$") and not value.startswith("${"):
        return os.environ.get(value[1:]) or None
    return _absolute(_expand(value, tokens))


def _tokens(given: str, host: str, port: str, user: str, answer: Answer) -> dict[str, str]:
    """The percent tokens of ssh_config(5)."""
    local = socket.gethostname()
    jump = answer.one("proxyjump", "")
    alias = answer.one("hostkeyalias", "none")
    joined = "".join((local, host, port, user, "" if jump == "none" else jump))
    return {
        "%": "%",
        "C": hashlib.sha1(joined.encode(), usedforsecurity=False).hexdigest(),
        "d": str(Path.home()),
        "h": host,
        "i": str(os.getuid()),
        "j": "" if jump == "none" else jump,
        "k": given if alias == "none" else alias,
        "L": local.split(".")[0],
        "l": local,
        "n": given,
        "p": port,
        "r": user,
        "u": getpass.getuser(),
    }


def _expand(text: str, tokens: dict[str, str]) -> str:
    text = re.sub(r"%(.)", lambda found: tokens.get(found[1], found[0]), text)
    return re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], ""), text)


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())
