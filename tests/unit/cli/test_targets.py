import pytest

from console.cli.exits import UsageError
from console.cli.targets import choose
from console.settings.load import parse
from console.settings.schema import Droplet

SETTINGS = parse("droplets: {a: {group: g, tags: [t]}, b: {tags: [t]}, c: {host: local}}", "config.yaml")


@pytest.mark.parametrize(
    ("word", "droplet", "target"),
    [
        ("local", Droplet("local", host="local"), "local"),
        ("host", Droplet("host", host="host"), "host"),
        ("me@host", Droplet("me@host", host="host", user="me"), "me@host"),
        ("me@host:2222", Droplet("me@host:2222", host="host", user="me", port=2222), "me@host:2222"),
        ("10.0.0.1:22", Droplet("10.0.0.1:22", host="10.0.0.1", port=22), "10.0.0.1:22"),
        ("::1", Droplet("::1", host="::1"), "::1"),
        ("me@::1", Droplet("me@::1", host="::1", user="me"), "me@::1"),
        ("[::1]:22", Droplet("[::1]:22", host="::1", port=22), "[::1]:22"),
        ("[fe80::1%eth0]", Droplet("[fe80::1%eth0]", host="fe80::1%eth0"), "fe80::1%eth0"),
    ],
)
def test_anything_that_ssh_would_take(word: str, droplet: Droplet, target: str) -> None:
    assert choose(SETTINGS, [word]) == (droplet,)
    assert droplet.target == target


def test_names_come_first_and_nobody_comes_twice() -> None:
    assert [droplet.name for droplet in choose(SETTINGS, ["b", "@t", "@g", "c", "b"])] == ["b", "a", "c"]


@pytest.mark.parametrize("word", ["", "-oProxyCommand=x", "a b", "a\x1b[2J", "user@", "@", "a/b", "me@-x", "x:0"])
def test_what_is_no_droplet_is_refused(word: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose(SETTINGS, [word])
    assert str(caught.value).isprintable()
