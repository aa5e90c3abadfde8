import textwrap
from pathlib import Path

import pytest

from console.settings.errors import SettingsError
from console.settings.load import MAX_BYTES, load, parse
from console.settings.paths import Place
from console.settings.schema import COMMANDS, Droplet, Server, Settings, Sudo


def read(text: str) -> Settings:
    return parse(textwrap.dedent(text), "config.yaml")


def mistakes(text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read(text)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_reads_everything_a_droplet_can_have() -> None:
    settings = read("""
        interval: 0.5
        thresholds: {dram_low_percent: 20}
        droplets:
          plain:
          full:
            host: 2001:db8::1
            user: ops
            port: 2222
            identity: [~/.ssh/a, ~/.ssh/b]
            jump: root@bastion:22,inner
            sudo: ask
            group: on
            tags: one
            colour: red
            production: yes
            price_per_hour: 3.39
            interval: 5
            servers: [{name: a, http: 8000, grpc: 8001, metrics: 8002}, {name: b}]
    """)
    plain, full = settings.droplets
    assert plain == Droplet(name="plain")
    assert plain.target == "plain"
    assert full == Droplet(
        name="full",
        host="2001:db8::1",
        user="ops",
        port=2222,
        identity=("~/.ssh/a", "~/.ssh/b"),
        jump="root@bastion:22,inner",
        sudo=Sudo.ASK,
        group="on",
        tags=("one",),
        colour="red",
        production=True,
        price_per_hour=3.39,
        interval=5.0,
        servers=(Server("a", 8000, 8001, 8002), Server("b")),
    )
    assert full.target == "ops@[2001:db8::1]:2222"
    assert settings.interval == 0.5
    assert settings.thresholds.dram_low_percent == 20
    assert settings.droplet("full") is full
    assert settings.droplet("none") is None


@pytest.mark.parametrize("text", ["", "# nothing\n", "droplets:\n", "---\n"])
def test_an_empty_file_means_defaults(text: str) -> None:
    assert read(text) == Settings(file="config.yaml")


def test_an_unknown_key_names_place_path_and_nearest_key() -> None:
    assert mistakes("droplets:\n  gpu-1:\n    hots: example.com\n") == [
        "config.yaml:3:5: droplets.gpu-1.hots: no such key; did you mean host?"
    ]
    assert mistakes("dropletz: {}\n") == ["config.yaml:1:1: dropletz: no such key; did you mean droplets?"]
    (far,) = mistakes("qqq: 1\n")
    assert far == "config.yaml:1:1: qqq: no such key; possible are droplets, interval, thresholds"


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file() -> None:
    found = mistakes("""\
        interval: fast
        droplets:
          a: {port: 70000, production: perhaps, colour: pink}
          b: {interval: .nan, price_per_hour: -1, host: "a b"}
        thresholds: [1]
    """)
    assert [line.split(": ")[0] for line in found] == [
        "config.yaml:1:11",
        "config.yaml:3:13",
        "config.yaml:3:32",
        "config.yaml:3:49",
        "config.yaml:4:17",
        "config.yaml:4:39",
        "config.yaml:4:49",
        "config.yaml:5:13",
    ]
    assert found[1] == "config.yaml:3:13: droplets.a.port: must be a port from 1 to 65535, not '70000'"
    assert "'pink' is not possible; possible are blue, cyan, green" in found[3]


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("droplets: {a: {password: hunter2}}", "droplets.a.password", "asked for when it is needed"),
        ("droplets: {a: {passphrase: hunter2}}", "droplets.a.passphrase", "ssh-agent"),
        ("droplets: {a: {sudo_password: hunter2}}", "droplets.a.sudo_password", "asked for when it is needed"),
        ("hf_token: hunter2", "hf_token", "HF_TOKEN"),
        ("digitalocean_token: hunter2", "digitalocean_token", "DIGITALOCEAN_TOKEN"),
        ("api-key: hunter2", "api-key", "environment variable"),
        ("droplets: {a: {group: dop_v1_0123456789abcdefhunter2}}", "droplets.a.group", "a DigitalOcean token"),
        ("droplets: {a: {tags: [x, hf_abcdefghijhunter2]}}", "droplets.a.tags", "a Hugging Face token"),
        (
            'droplets: {a: {identity: "-----BEGIN OPENSSH PRIVATE KEY-----\\nhunter2"}}',
            "droplets.a.identity",
            "a private key",
        ),
        ("droplets: {a: {jump: 'ssh://me:hunter2@bastion'}}", "droplets.a.jump", "a password in an address"),
    ],
)
def test_secrets_are_refused_with_the_place_where_they_belong_and_never_repeated(
    text: str, where: str, said: str
) -> None:
    (found,) = mistakes(text)
    assert found.startswith("config.yaml:1:")
    assert f": {where}: " in found
    assert said in found
    assert "hunter2" not in found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_droplet_cannot_be_named_like_a_command(name: str) -> None:
    (found,) = mistakes(f"droplets:\n  {name}: {{}}\n")
    assert found.startswith(f"config.yaml:2:3: droplets.{name}: cannot be named like a command, ")


@pytest.mark.parametrize("name", ["local", "a b", "-x", "@all", "root@host", "x" * 64, '"\\e[31m"', '""'])
def test_names_that_would_confuse_the_command_line_are_refused(name: str) -> None:
    (found,) = mistakes(f"droplets:\n  {name}: {{}}\n")
    assert found.startswith("config.yaml:2:3: ")
    assert "\x1b" not in found


def test_duplicates_name_both_places() -> None:
    assert mistakes("droplets:\n  a: {}\n  b: {}\n  a: {}\n") == [
        "config.yaml:4:3: droplets.a: stands here twice; the first is in line 2"
    ]
    (found,) = mistakes("droplets: {a: {servers: [{name: t}, {name: t}]}}")
    assert "droplets.a.servers[1]: a second server named t" in found


def test_merges_share_settings_between_droplets() -> None:
    settings = read("""
        droplets:
          a: &base {user: ops, port: 2222}
          b: {<<: *base, port: 22}
    """)
    assert [(droplet.user, droplet.port) for droplet in settings.droplets] == [("ops", 2222), ("ops", 22)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("droplets: [", "config.yaml:"),
        ("a: b: c\n", "config.yaml:1:5"),
        ("interval: 1\n\tx: 2\n", "config.yaml:2:1"),
        ("--- 1\n--- 2\n", "config.yaml:2:1"),
        ("droplets: *nobody\n", "config.yaml:1:11"),
    ],
)
def test_what_is_not_yaml_is_placed(text: str, place: str) -> None:
    (found,) = mistakes(text)
    assert found.startswith(place)
    assert "not YAML" in found


def test_a_tab_is_called_a_tab() -> None:
    assert mistakes("interval: 1\n\tx: 2\n") == [
        "config.yaml:2:1: not YAML: a tab stands here; YAML indents with spaces"
    ]


@pytest.mark.parametrize("depth", [500, 5000, 200_000])
def test_a_deeply_nested_file_is_refused_not_followed(depth: int) -> None:
    (found,) = mistakes("interval: " + "[" * depth + "]" * depth)
    assert found.startswith("config.yaml")


@pytest.mark.parametrize("text", ["just words", "- a\n- b\n", "droplets: [a]", "droplets: {a: root@host}"])
def test_the_wrong_shape_is_said(text: str) -> None:
    (found,) = mistakes(text)
    assert "must be keys with values" in found


def test_thresholds_must_be_in_order() -> None:
    (found,) = mistakes("thresholds: {dram_low_percent: 90}")
    assert found == ("config.yaml:1:13: thresholds.dram_low_percent: 90 must be below dram_high_percent, 80")


def test_a_missing_default_file_means_defaults_and_a_missing_named_one_does_not(tmp_path: Path) -> None:
    assert load(Place(tmp_path / "config.yaml", None)) == Settings()
    with pytest.raises(SettingsError, match=r"config.yaml: no such file \(named by --config\)"):
        load(Place(tmp_path / "config.yaml", "--config"))


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: Is a directory"):
        load(Place(tmp_path, None))


def test_bytes_that_are_no_text_are_placed(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(b"interval: 1\n# caf\xe9\n")
    with pytest.raises(SettingsError, match=r"config.yaml:2:6: byte 0xe9 is not UTF-8"):
        load(Place(file, None))


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(b"\xef\xbb\xbfinterval: 3\n")
    assert load(Place(file, None)).interval == 3


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(SettingsError, match="not a settings file"):
        load(Place(file, None))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('droplets: {a: {host: "root:hunter2@1.2.3.4"}}', "looks like a password in an address"),
        ('droplets: {a: {jump: "b@x,root:hunter2@1.2.3.4"}}', "looks like a password in an address"),
        ('droplets: {a: {host: "/root:hunter2@1.2.3.4"}}', "not repeated here: it may hold a password"),
        ('droplets: {a: {sudo: "x y:hunter2@z"}}', "it may hold a password) is not possible"),
        ('droplets: {"root:hunter2@1.2.3.4": {}}', "droplets....: a name is 1 to 63 letters"),
        ('interval: "root:hunter2@1.2.3.4"', "looks like a password"),
    ],
)
def test_a_password_in_an_address_is_told_and_never_repeated(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text, "config.yaml")
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_ports_of_jump_hosts_are_no_passwords() -> None:
    (droplet,) = parse("droplets: {a: {jump: 'me@bastion:2222,you@inner:22'}}", "config.yaml").droplets
    assert droplet.jump == "me@bastion:2222,you@inner:22"


def test_bounds_are_written_as_people_write_them() -> None:
    with pytest.raises(SettingsError, match=r"a number from 0 to 1000000, not '-1'"):
        parse("droplets: {a: {price_per_hour: -1}}", "config.yaml")
    with pytest.raises(SettingsError, match=r"99\.99999999 must be below dram_high_percent, 80"):
        parse("thresholds: {dram_low_percent: 99.99999999}", "config.yaml")
