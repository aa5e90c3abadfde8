from pathlib import Path

import pytest

from console.settings.paths import find


def test_the_option_comes_before_the_variable_and_the_variable_before_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    environment = {"DROPLET_CONSOLE_CONFIG": "~/env.yaml"}
    assert find("given.yaml", environment).path == Path("given.yaml")
    assert find("given.yaml", environment).asked_by == "--config"
    assert find(None, environment).path == tmp_path / "env.yaml"
    assert find(None, environment).asked_by == "$DROPLET_CONSOLE_CONFIG"
    default = find(None, {})
    assert default.asked_by is None
    assert default.path.name == "config.yaml"
    assert default.path.parent.name == "droplet-console"
    assert tmp_path in default.path.parents
