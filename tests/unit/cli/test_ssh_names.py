from pathlib import Path

import pytest

from console.cli import context, ssh_names
from console.remote.errors import FailureKind, RemoteError
from console.settings.schema import Droplet, Settings


def test_names_without_patterns_come_from_the_file_and_what_it_includes(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.conf").write_text("host=inner\nInclude ../config\n")
    config = tmp_path / "config"
    config.write_text('Include more/*.conf\nHost gpu-1 gpu-2 *.example !bad\n  HostName 192.0.2.1\nHost "quoted"\n')
    assert ssh_names.names(config) == ["inner", "gpu-1", "gpu-2", "quoted"]
    assert ssh_names.names(tmp_path / "none") == []


def test_a_slip_is_met_with_a_host_of_ssh_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host bastion\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    error = RemoteError(FailureKind.NAME_NOT_RESOLVED, "The name bastoin is not known.")
    found = context.explained(error, Droplet("root@bastoin", host="bastoin", user="root"), Settings())
    assert found.hint == "Did you mean bastion? ~/.ssh/config has that name."
