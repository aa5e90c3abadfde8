"""Where a droplet is, resolved: what ssh itself would use for that name."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Target:
    """A droplet's address with everything a login needs.

    Made by ``console.remote.address.resolve.resolve``. Paths are absolute, ``~`` and tokens expanded.

    Attributes:
        name: As the person called it.
        local: True for this very machine; nothing else matters then.
        host: The name or address to connect to.
        host_key_alias: The name to look host keys up by (HostKeyAlias), or None for ``host``.
        jumps: The hosts in between, in order, each resolved by itself; they have no jumps of their own.
        proxy_command: Run as given, its stdin and stdout are the line; None without one.
        identity_files: Private keys to try, in order.
        certificate_files: Certificates for them.
        identities_only: Offer only these, not all that the agent holds.
        identity_agent: The agent's socket; None for none.
        known_hosts_files: The user's and the system's, read only.
        strict_host_key_checking: "ask", "accept-new", "yes" or "no", as ssh_config has it.
        host_key_algorithms: In order of preference; empty for the library's own.
        preferred_authentications: In order; empty for publickey, keyboard-interactive, password.
        connect_timeout: Seconds for TCP, then again for the banner and the key exchange together.
        source: How it was resolved, for messages: "ssh -G", "ssh_config", "settings".
    """

    name: str
    local: bool = False
    host: str = ""
    port: int = 22
    user: str = ""
    host_key_alias: str | None = None
    jumps: tuple[Target, ...] = ()
    proxy_command: str | None = None
    identity_files: tuple[str, ...] = ()
    certificate_files: tuple[str, ...] = ()
    identities_only: bool = False
    identity_agent: str | None = None
    known_hosts_files: tuple[str, ...] = ()
    strict_host_key_checking: str = "ask"
    host_key_algorithms: tuple[str, ...] = ()
    preferred_authentications: tuple[str, ...] = ()
    connect_timeout: float = 15.0
    bind_address: str | None = None
    address_family: str = "any"
    source: str = "settings"
    options: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Whatever else ssh said, lower-case keys: for messages and for what is not supported."""

    @property
    def address(self) -> str:
        """``user@host`` or ``user@host:port``, for people."""
        host = f"[{self.host}]" if ":" in self.host and self.port != 22 else self.host
        where = host if self.port == 22 else f"{host}:{self.port}"
        return f"{self.user}@{where}" if self.user else where
