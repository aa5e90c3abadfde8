"""Requests to Triton's endpoints, and in words why an answer brought nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from remote_scripts.triton.address import Endpoint
from remote_scripts.triton.json import error_text
from remote_scripts.triton.loopback import Answer, Request

Read = TypeVar("Read")


def get(endpoint: Endpoint, path: str, *, keep: bool = False) -> Request:
    """A GET; ``keep`` where another request to the same endpoint follows in the chain."""
    return Request(endpoint.address, path, keep=keep, connect=endpoint.connect)


def body_of(answer: Answer, what: str) -> bytes:
    """The body of an answer.

    Args:
        answer: to a request.
        what: was asked for, as in "its statistics".

    Raises:
        ValueError: there is none; the text says why, after "n/a, because".
    """
    if answer.failure:
        raise ValueError(f"Triton was asked for {what}: {answer.reason}")
    if answer.status == 200:
        return answer.body
    message = error_text(answer.body)
    if answer.status == 403:
        raise ValueError(f"Triton restricts access to {what} (403{': ' + message if message else ''})")
    raise ValueError(f"Triton answered {answer.status} when asked for {what}{': ' + message if message else ''}")


def understood(read: Callable[[bytes], Read], answer: Answer, what: str) -> Read:
    """The body of an answer, read.

    Raises:
        ValueError: there is none, or it is not what it should be; the text says why, after "n/a, because".
    """
    body = body_of(answer, what)
    try:
        return read(body)
    except ValueError as error:
        raise ValueError(f"Triton was asked for {what}, and its answer cannot be read: {error}") from error
