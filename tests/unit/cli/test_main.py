import json
from pathlib import Path

import pytest

from console.cli import exits, main
from console.cli.exits import Exit
from console.remote.errors import FailureKind, RemoteError
from console.services.link import Phase
from console.settings.schema import COMMANDS
from tests.unit.cli.fakes import install, link, sampled, settings_file
from tests.unit.cli.samples import sample

INVENTORY = """
droplets:
  prod: {host: 203.0.113.10, user: root, group: live, tags: [llm], production: true, price_per_hour: 3.39}
  spare: {tags: [llm, cheap]}
"""


def test_every_command_is_a_name_that_no_droplet_can_have() -> None:
    assert set(main.COMMANDS) <= set(COMMANDS)


@pytest.mark.parametrize(
    "words", [["--json", "droplets"], ["droplets", "--json"], ["--read-only", "droplets", "--json"]]
)
def test_shared_flags_stand_before_or_after_the_command(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = settings_file(tmp_path, INVENTORY)
    assert main.main(["--config", file, *words]) == Exit.DONE
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "droplets/1"
    assert document["file"] == file
    assert [droplet["name"] for droplet in document["droplets"]] == ["prod", "spare"]
    assert document["droplets"][0]["target"] == "root@203.0.113.10"
    assert main.main([*words, "--config", file]) == Exit.DONE


def test_the_inventory_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = settings_file(tmp_path, INVENTORY)
    assert main.main(["droplets", "--config", file]) == Exit.DONE
    heading, prod, spare = capsys.readouterr().out.splitlines()
    assert heading.split() == ["NAME", "TARGET", "GROUP", "TAGS", "PER", "HOUR"]
    assert prod.split() == ["prod", "root@203.0.113.10", "live", "llm", "3.39", "PRODUCTION"]
    assert spare.split() == ["spare", "spare", "-", "llm,", "cheap", "-"]


@pytest.mark.parametrize(
    ("word", "names"), [("@live", ["prod"]), ("@llm", ["prod", "spare"]), ("spare", ["spare"])]
)
def test_the_inventory_by_group_tag_or_name(
    word: str, names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = settings_file(tmp_path, INVENTORY)
    assert main.main(["droplets", word, "--json", "--config", file]) == Exit.DONE
    assert [droplet["name"] for droplet in json.loads(capsys.readouterr().out)["droplets"]] == names


def test_without_settings_the_inventory_is_empty_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("DROPLET_CONSOLE_CONFIG", raising=False)
    assert main.main(["droplets"]) == Exit.DONE
    said = capsys.readouterr()
    assert said.out == ""
    assert "config.yaml does not exist" in said.err
    assert main.main(["droplets", "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out) == {"schema": "droplets/1", "file": None, "droplets": []}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["statsu", "x"], "no command 'statsu'; did you mean status?"),
        (["--json", "gpu-1"], "--json has no meaning here: the console shows screens; for JSON there are `status`"),
        (["--timeout", "5", "wacth"], "did you mean watch?"),
        (["status"], "required: TARGET"),
        (["status", "x", "--tmeout", "5"], "unrecognized arguments"),
        (["status", "x", "--time", "5"], "unrecognized arguments"),
        (["status", "x", "--timeout", "0"], "'0' is not a number of seconds above 0"),
        (["status", "x", "--timeout", "nan"], "not a number of seconds"),
        (["watch", "x", "--count", "0"], "'0' is not a number from 1 up"),
        (["status", "x", "--dry-run"], "--dry-run has no meaning here: `status` changes nothing"),
        (["--yes", "watch", "x"], "--yes has no meaning here: `watch` asks for no confirmation"),
        (["--server", "a", "droplets"], "--server has no meaning here: `droplets` asks no Triton server"),
        (["--timeout", "5", "droplets"], "--timeout has no meaning here: `droplets` waits for no droplet"),
        (["droplets", "nobody", "--config", "/dev/null"], "no droplet 'nobody' in /dev/null; it names none"),
        (["status", "a b", "--config", "/dev/null"], "'a b' is no droplet"),
        (["status", "x:99999", "--config", "/dev/null"], "99999 is no port"),
        (["status", "@all", "--config", "/dev/null"], "the settings know no groups"),
        (["status", "x", "--config", "/none.yaml"], "/none.yaml: no such file (named by --config)"),
        (["--config", "/dev/null"], "no droplet is named, and the settings list none"),
        (["gpu-1", "--config", "/dev/null"], "the console needs a terminal"),
        (["demo"], "the console needs a terminal"),
        (["a b", "--config", "/dev/null"], "'a b' is no droplet"),
    ],
)
def test_what_cannot_be_is_said_on_stderr_with_status_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(words) == Exit.USAGE
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_every_mistake_in_the_settings_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = settings_file(tmp_path, "intervall: 1\ndroplets: {a: {port: x}}\n")
    assert main.main(["droplets", "--config", file]) == Exit.USAGE
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"droplet-console: {file}:1:1: intervall: no such key; did you mean interval?"
    assert second.startswith(f"droplet-console: {file}:2:22: droplets.a.port: must be a port")


def test_a_failure_that_no_command_expected_is_no_connection(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> Exit:
        raise RemoteError(FailureKind.SETTINGS, "the key file cannot be read", hint="chmod 600 it")

    monkeypatch.setattr("console.cli.status.run", fail)
    assert main.main(["status", "x"]) == Exit.NO_CONNECTION
    assert capsys.readouterr().err == "droplet-console: the key file cannot be read\nchmod 600 it\n"


def test_interrupted_is_130(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    opened = install(monkeypatch, [link("x", Phase.CONNECTING)], at_end=interrupt)
    assert main.main(["watch", "x", "--config", settings_file(tmp_path, "")]) == 130
    assert opened.fleet.closed


def test_status_through_the_whole_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = install(monkeypatch, [sampled(sample("root@[2001:db8::1]:2222"))])
    words = ["status", "root@[2001:db8::1]:2222", "--json", "--config", settings_file(tmp_path, "")]
    assert main.main(words) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["droplets"][0]["droplet"] == "root@[2001:db8::1]:2222"
    (droplet,) = opened.droplets
    assert (droplet.user, droplet.host, droplet.port) == ("root", "2001:db8::1", 2222)


def test_exit_statuses_are_those_of_the_design() -> None:
    assert {status.name: int(status) for status in exits.Exit} == {
        "DONE": 0,
        "NOT_WELL": 1,
        "USAGE": 2,
        "NO_CONNECTION": 3,
        "ROLLED_BACK": 4,
        "UNKNOWN_STATE": 5,
        "REFUSED": 6,
        "INTERRUPTED": 130,
    }


def test_a_commands_usage_begins_with_the_program_and_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["status", "--help"]) == Exit.DONE
    assert capsys.readouterr().out.startswith("usage: droplet-console status [-h]")
    assert main.main(["watch", "x", "--interval", "0"]) == Exit.USAGE
    assert "\ndroplet-console watch: error: argument --interval" in capsys.readouterr().err


def test_a_slip_in_the_inventory_is_met_with_the_file_and_the_nearest_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = settings_file(tmp_path, INVENTORY)
    assert main.main(["droplets", "spaer", "--config", file]) == Exit.USAGE
    assert capsys.readouterr().err == f"droplet-console: no droplet 'spaer' in {file}; did you mean spare?\n"
    assert main.main(["droplets", "x", "--config", file]) == Exit.USAGE
    assert capsys.readouterr().err.endswith("; possible are prod, spare\n")


@pytest.mark.parametrize("words", [["status", "root:p/w@h"], ["droplets", "root:p/w@h"], ["root:p/w@h:22"]])
def test_a_password_on_the_command_line_is_not_repeated(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([*words, "--config", "/dev/null"]) == Exit.USAGE
    assert "p/w" not in capsys.readouterr().err


def test_help_shows_defaults_and_no_flag_that_nothing_honours(capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "default: 30 for status, no end for watch" in shown
    assert "--read-only" in shown
    assert "--dry-run" not in shown
    assert "--yes" not in shown
    main.main(["watch", "--help"])
    assert "default: as the settings say, otherwise 1" in " ".join(capsys.readouterr().out.split())
