"""Triton's ports on this machine, and how to call the chosen model through them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.domain.triton.call import Signature, curl, python
from console.services.calls import ask_signature
from console.services.forward import LOOPBACK, Forwards
from console.tui.modals.base import Modal
from console.tui.widgets.words import Words

ASK_S = 10.0
STOP = "stop"


class ForwardedModal(Modal[str]):
    """Closes with ``STOP`` where the ports are to be given back; they stay otherwise.

    Args:
        server: Triton's name, with the droplet's.
        forwards: The ports.
        model: The model's name and version; None where none is ready.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy_curl", show=False),
        Binding("y", "copy_python", show=False),
        Binding("x", "stop", show=False),
        Binding("enter,q", "give_up", show=False),
    ]

    def __init__(self, server: str, forwards: Forwards, model: tuple[str, str] | None) -> None:
        super().__init__(f"{server} on this machine")
        self._forwards = forwards
        self._model = model
        self._signature: Signature | None = None
        self._curl = Words("", "text")
        self._python = Words("", "text")
        self._said = Words("", "dim")

    def inside(self) -> ComposeResult:
        """See ``Modal``."""
        ports = [f"{protocol} {LOOPBACK}:{port}" for protocol, port in self._forwards.local.items()]
        yield Words("\n".join(ports) if ports else "Triton says no port", "accent")
        yield Words("through the console's own connection, until you stop it or quit; this machine alone", "dim")
        yield Words("")
        yield self._said
        yield self._curl
        yield Words("")
        yield self._python
        yield Words("")
        yield Words("c copies the curl call   y the Python   x stops forwarding   esc closes this", "dim")

    def on_mount(self) -> None:
        """Ask Triton what the model takes."""
        port = self._forwards.local.get("http")
        if self._model is None or port is None:
            self._said.show("no model is ready to be called" if port is not None else "Triton has no HTTP port")
            return
        name, version = self._model
        self._said.show(f"asking Triton what {name} takes")
        loop = asyncio.get_running_loop()

        def ask() -> None:
            try:
                found: Signature | str = ask_signature(port, name, version, ASK_S)
            except OSError as error:
                found = self._forwards.failure or str(error)
            _tell(loop, lambda: self._show(found, port))

        threading.Thread(target=ask, name="ask signature", daemon=True).start()

    def action_copy_curl(self) -> None:
        """Take the curl call along."""
        self._copy(curl)

    def action_copy_python(self) -> None:
        """Take the Python program along."""
        self._copy(python)

    def action_stop(self) -> None:
        """Give the ports back."""
        self.answer(STOP)

    def _copy(self, write: Callable[[int, Signature], str]) -> None:
        port = self._forwards.local.get("http")
        if self._signature is not None and port is not None:
            self.app.copy_to_clipboard(write(port, self._signature))
            self._said.show("copied", "good")

    def _show(self, found: Signature | str, port: int) -> None:
        if not self.is_attached:
            return
        if isinstance(found, str):
            self._said.show(f"how to call it is not known: {found}", "warn")
            return
        self._signature = found
        self._said.show(f"calling {found.name} with zeros of the right shape:")
        self._curl.show(curl(port, found))
        self._python.show(python(port, found))


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the app has ended meanwhile
        loop.call_soon_threadsafe(what)
