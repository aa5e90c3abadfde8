"""Proving who one is: the methods in the order of ssh_config, until the server is content.

Nothing is tried again by itself: a key is offered once, and what a person typed is wrong at most as often as that
person types it anew.
"""

from __future__ import annotations

from console.domain.telemetry.text import printable
from console.remote.authentication.auth_dialogues import Dialogues
from console.remote.authentication.auth_keys import PublicKeys
from console.remote.authentication.userauth import Failure, Success
from console.remote.errors import FailureKind, RemoteError
from console.remote.login import failures
from console.remote.login.exchange import Exchange
from console.remote.ssh import ssh_wire
from console.remote.ssh.paramiko_api import line_errors

METHODS = ("publickey", "keyboard-interactive", "password")
_MAX_ROUNDS = 20


def authenticate(exchange: Exchange) -> None:
    """Log in over a connection whose host key was accepted.

    Raises:
        RemoteError: NO_KEY_ACCEPTED, PASSWORD_REFUSED, SECOND_FACTOR_WANTED, STILL_BOOTING, TIMED_OUT, LOST or
            PROTOCOL.
    """
    attempt = _Attempt(exchange)
    try:
        attempt.run()
    except TimeoutError as error:
        raise RemoteError(
            FailureKind.TIMED_OUT,
            f"{failures.who(exchange.target)} does not answer the login in time.",
            hint="The droplet may be slow to look up this machine's name (UseDNS) or its users, or be overloaded.",
        ) from error
    except ssh_wire.WireError as error:
        raise RemoteError(FailureKind.PROTOCOL, f"{failures.who(exchange.target)}: {error}.") from error
    except line_errors() as error:
        raise attempt.cut_off() from error
    finally:
        attempt.keys.close()


class _Attempt:
    """One login's way through the methods."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._target = exchange.target
        self._order = [m for m in exchange.target.preferred_authentications or METHODS if m in METHODS]
        self.keys = PublicKeys(exchange)
        self._dialogues = Dialogues(exchange)
        self._methods: tuple[str, ...] | None = None
        self._spent: set[str] = set()
        self._partly = False

    def run(self) -> None:
        """Go on until the server says yes.

        Raises:
            RemoteError: It does not.
        """
        if "publickey" in self._order:
            self.keys.collect()
        if not self.keys.left:
            # Only to learn which methods there are, lest a password is asked for that no one wants.
            self._spent.add("publickey")
            if self._done(self._exchange.auth.none(self._exchange.deadline.remaining())):
                return
        for _ in range(_MAX_ROUNDS):
            method = next((m for m in self._order if self._open(m)), None)
            if method is None:
                break
            answer = self._try(method)
            if answer is None:
                self._spent.add(method)
            elif self._done(answer):
                return
        raise self._failed()

    def _open(self, method: str) -> bool:
        return method not in self._spent and (self._methods is None or method in self._methods)

    def _try(self, method: str) -> Success | Failure | None:
        if method == "publickey":
            return self.keys.offer_next()
        return self._dialogues.password() if method == "password" else self._dialogues.interactive()

    def _done(self, answer: Success | Failure) -> bool:
        if isinstance(answer, Success):
            self.keys.remember()
            self._dialogues.remember()
            return True
        self._methods = answer.methods
        if answer.partial:
            self._partly = True
            self.keys.remember()
        return False

    # --- why not

    def cut_off(self) -> RemoteError:
        """The server hung up meanwhile."""
        goodbye = self._exchange.transport.disconnected
        booting = failures.still_booting(self._target, self._exchange.auth.banners)
        if booting is not None:
            return booting
        said = printable(goodbye[1], 200) if goodbye is not None else ""
        if "Too many authentication failures" in said:
            return self._no_key(
                f"{failures.who(self._target)} hung up after too many keys: {said}.",
                "It allows few tries (MaxAuthTries). Name the right key: IdentityFile with IdentitiesOnly yes in"
                " ssh_config, or `identity` in the settings.",
            )
        ended = f": {said}" if said else "."
        return RemoteError(
            FailureKind.LOST,
            f"{failures.who(self._target)} ended the connection during the login{ended}",
            hint="LoginGraceTime may have passed, the account may be locked, or the line broke.",
        )

    def _failed(self) -> RemoteError:
        booting = failures.still_booting(self._target, self._exchange.auth.banners)
        if booting is not None:
            return booting
        wants = ", ".join(printable(m, 40) for m in self._methods or ())
        who = failures.who(self._target)
        if self._partly:
            answered = " and what was answered is wrong" if self._dialogues.refused else ""
            return RemoteError(
                FailureKind.SECOND_FACTOR_WANTED,
                f"{who} accepts the first proof, but wants another ({wants}){answered}.",
                hint="Connect from a terminal, where the second factor can be asked for.",
            )
        if self._dialogues.refused:
            return RemoteError(
                FailureKind.PASSWORD_REFUSED,
                f"{who} does not accept what was typed for {self._target.user}{self._dialogues.expired_note()}.",
                hint="Check the user name too: sshd does not say which of the two is wrong.",
            )
        if self.keys.offered:
            return self._no_key(
                f"{who} accepts none of the keys offered for {self._target.user}.",
                f"It takes: {wants}. Check the user name, and ~/.ssh/authorized_keys there.",
            )
        return self._no_key(
            f"{who}: there is no key to offer for {self._target.user}.",
            f"The server takes: {wants}. Add a key to the agent (ssh-add), or name one with IdentityFile.",
        )

    def _no_key(self, message: str, hint: str) -> RemoteError:
        parts = [message]
        if self.keys.offered:
            parts.append(f"Offered: {'; '.join(self.keys.offered)}.")
        if self.keys.notes:
            parts.append(f"Not usable: {'; '.join(self.keys.notes)}.")
        return RemoteError(FailureKind.NO_KEY_ACCEPTED, " ".join(parts), hint=hint)
