"""Every way to prove who one is, against a real sshd."""

from __future__ import annotations

import pytest

from console.remote.login import Login
from tests.remote.conftest import Enter, Person, StartSshd
from tests.remote.sshd import PASSPHRASE, PASSWORD, USER, Keys

pytestmark = pytest.mark.lab


def output_of(login: Login, command: str) -> bytes:
    channel = login.transport.open_channel(timeout=10)
    channel.settimeout(10)
    channel.start(command)
    data = b""
    while chunk := channel.recv(4096):
        data += chunk
    return data


@pytest.mark.parametrize("name", ["ed25519", "ecdsa", "rsa", "pem"])
def test_a_key_file_of_each_kind_logs_in(start_sshd: StartSshd, enter: Enter, keys: Keys, name: str) -> None:
    server = start_sshd()
    server.accept(name)
    login = enter(server.target(identity_files=(keys.path(name),)))
    assert output_of(login, "echo $((6*7))") == b"42\n"
