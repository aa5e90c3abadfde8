from __future__ import annotations

import pytest

from console.remote import refusals, sudo
from console.remote.errors import FailureKind


@pytest.mark.parametrize(
    ("said", "kind", "hint"),
    [
        # DigitalOcean's 1-Click images, before their first boot is through.
        (b"Please wait while we get your droplet ready...\n", FailureKind.STILL_BOOTING, "cloud-init"),
        # pam_nologin while systemd starts.
        (
            b'"System is booting up. Unprivileged users are not permitted to log in yet. Please come back later."',
            FailureKind.STILL_BOOTING,
            "cloud-init",
        ),
        (b"This account is currently not available.\n", FailureKind.SHELL_REFUSED, "chsh"),
        (b"WARNING: Your password has expired.\n", FailureKind.SHELL_REFUSED, "password"),
        (b"rbash: exec: restricted\n", FailureKind.SHELL_REFUSED, "sh -c true"),
        (b"", FailureKind.SHELL_REFUSED, "sh -c true"),
    ],
)
def test_what_a_login_shell_said(said: bytes, kind: FailureKind, hint: str) -> None:
    for out, err in ((said, b""), (b"", said)):
        error = refusals.refused("web1", out, err)
        assert error.kind is kind
        assert hint in (error.hint or "")
        assert str(error).startswith("web1")


def test_hostile_words_are_made_safe() -> None:
    error = refusals.refused("web1", b"\x1b]0;x\x07\x1b[31mred\n\xff\x00\xe2\x80\xae" + b"y" * 5000, b"")
    assert str(error).isprintable()
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("sudo: sorry, you must have a tty to run sudo", "requiretty"),
        ("plain is not in the sudoers file.", "may not use sudo"),
        ("Sorry, user op is not allowed to execute '/usr/bin/sh -c x' as root on web1.", "some commands only"),
        ("env: 'sudo': No such file or directory", "not installed"),
        ("sh: 1: sudo: not found", "not installed"),
        ("sudo: /etc/sudoers is world writable", "does not work"),
        ("sudo: 1 incorrect password attempt", "no longer takes"),
    ],
)
def test_what_sudo_said(said: str, words: str) -> None:
    error = sudo.refusal("op", "web1", said)
    assert error is not None
    assert error.kind is FailureKind.SUDO_REFUSED
    assert words in str(error)


def test_sudo_that_wants_a_password_and_what_is_not_sudo() -> None:
    error = sudo.refusal("op", "web1", "sudo: a password is required\n")
    assert error is not None
    assert error.kind is FailureKind.SUDO_PASSWORD_WANTED
    assert sudo.refusal("op", "web1", "Traceback (most recent call last): ...") is None
