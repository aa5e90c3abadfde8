"""What the parts of one authentication share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from console.remote.authentication.memory import Memory
from console.remote.authentication.userauth import UserAuth
from console.remote.login.deadline import Deadline
from console.remote.prompts import Prompter
from console.remote.ssh.paramiko_api import Handshake
from console.remote.target import Target


@dataclass(frozen=True, slots=True)
class Exchange:
    """One login being authenticated.

    Attributes:
        transport: After the key exchange, its host key accepted.
        auth: The conversation on it.
        target: Whom, and with what.
        prompter: Asked for passphrases, passwords and second factors.
        deadline: For the server's answers.
        memory: What was typed before in this session.
        asking: Held around each question: no other is open then, and the deadline stands still.
    """

    transport: Handshake
    auth: UserAuth
    target: Target
    prompter: Prompter
    deadline: Deadline
    memory: Memory
    asking: Callable[[], AbstractContextManager[None]]
