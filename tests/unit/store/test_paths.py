from pathlib import Path

import pytest

from console.store.paths import known_hosts_file, make_private, state_folder


def test_the_variable_comes_before_the_platforms_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert state_folder({"DROPLET_CONSOLE_STATE": "~/kept"}) == tmp_path / "kept"
    assert tmp_path in state_folder({}).parents
    assert known_hosts_file({}) == state_folder({}) / "known_hosts"


@pytest.mark.parametrize("mode", [None, 0o755])
def test_the_folder_is_its_owners_alone(tmp_path: Path, mode: int | None) -> None:
    folder = tmp_path / "a" / "b"
    if mode is not None:
        folder.mkdir(parents=True, mode=mode)
    make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
