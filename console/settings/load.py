"""config.yaml into typed settings. Every mistake is collected, with its place, before anything is refused."""

from __future__ import annotations

import re

import yaml

from console.domain.thresholds import Thresholds
from console.settings import nodes
from console.settings.errors import Mistake, SettingsError
from console.settings.nodes import Read, Reader
from console.settings.paths import Place
from console.settings.schema import COLOURS, COMMANDS, Droplet, Server, Settings, Sudo

MAX_BYTES = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_WORD = nodes.text(r"[\w][\w .-]{0,62}", "a word of at most 63 letters, digits, '.', '_' and '-'")
_PERCENT = nodes.number(0, 100, "percent")
_INTERVAL = nodes.number(0.1, 3600, "seconds")


def load(place: Place) -> Settings:
    """Read a settings file.

    Returns:
        The settings; empty ones where the default file does not exist.

    Raises:
        SettingsError: The file cannot be read, or something in it is wrong.
    """
    file = str(place.path)
    try:
        with place.path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if place.asked_by is None:
            return Settings()
        raise SettingsError([Mistake(file, None, None, "", f"no such file (named by {place.asked_by})")]) from None
    except OSError as error:
        raise SettingsError([Mistake(file, None, None, "", f"cannot be read: {error.strerror}")]) from None
    if len(raw) > MAX_BYTES:
        raise SettingsError([Mistake(file, None, None, "", f"longer than {MAX_BYTES} bytes: not a settings file")])
    return parse(_decode(raw, file), file)


def parse(text: str, file: str) -> Settings:
    """Settings from the text of a file.

    Args:
        text: The whole file.
        file: Its name, for messages.

    Raises:
        SettingsError: Something in it is wrong; all that is wrong is in it.
    """
    root = nodes.compose(text, file)
    reader = Reader(file)
    values = {} if root is None else reader.section(root, "", SETTINGS_KEYS)
    if reader.mistakes:
        raise SettingsError(sorted(reader.mistakes, key=lambda mistake: (mistake.line or 0, mistake.column or 0)))
    return Settings(file=file, **values)


def _decode(raw: bytes, file: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise SettingsError([Mistake(file, line, column, "", message)]) from None


def _droplets(reader: Reader, node: yaml.Node, path: str) -> tuple[Droplet, ...]:
    found = []
    for name, (key, value) in reader.entries(node, path).items():
        where = nodes.join(path, name)
        if name in COMMANDS:
            reader.wrong(
                key, where, f"cannot be named like a command, `droplet-console {name}`: choose another name"
            )
        elif name == "local":
            reader.wrong(key, where, "local always means this machine; choose another name and set host: local")
        elif not _NAME.fullmatch(name):
            reader.wrong(key, where, "a name is 1 to 63 letters, digits, '.', '_' and '-', the first no sign")
        else:
            found.append(Droplet(name=name, **reader.section(value, where, DROPLET_KEYS)))
    return tuple(found)


def _servers(reader: Reader, node: yaml.Node, path: str) -> tuple[Server, ...]:
    if not isinstance(node, yaml.SequenceNode):
        reader.wrong(node, path, f"must be a list of servers, each with a name, not {nodes.describe(node)}")
        return ()
    found: list[Server] = []
    for index, item in enumerate(node.value):
        where = f"{path}[{index}]"
        known = len(reader.mistakes)
        values = reader.section(item, where, SERVER_KEYS)
        if "name" not in values:
            if len(reader.mistakes) == known:
                reader.wrong(item, where, "needs a name")
        elif any(server.name == values["name"] for server in found):
            reader.wrong(item, where, f"a second server named {values['name']}")
        else:
            found.append(Server(**values))
    return tuple(found)


def _thresholds(reader: Reader, node: yaml.Node, path: str) -> Thresholds:
    values = Thresholds(**reader.section(node, path, THRESHOLD_KEYS))
    low, high = values.dram_low_percent, values.dram_high_percent
    if low >= high:
        reader.wrong(
            node,
            nodes.join(path, "dram_low_percent"),
            f"{_plain(low)} must be below dram_high_percent, {_plain(high)}",
        )
    return values


def _plain(value: float) -> str:
    """A number as people write it: 30 and 99.95, never 1e+06."""
    return repr(int(value) if value == int(value) else value)


def _sudo(reader: Reader, node: yaml.Node, path: str) -> Sudo | None:
    word = nodes.choice(way.value for way in Sudo)(reader, node, path)
    return None if word is None else Sudo(word)


SERVER_KEYS: dict[str, Read] = {
    "name": _WORD,
    "http": nodes.port,
    "grpc": nodes.port,
    "metrics": nodes.port,
}
THRESHOLD_KEYS: dict[str, Read] = {
    "dram_low_percent": _PERCENT,
    "dram_high_percent": _PERCENT,
    "cpu_high_percent": _PERCENT,
    "memory_high_percent": _PERCENT,
}
DROPLET_KEYS: dict[str, Read] = {
    "host": nodes.text(
        r"[^\s@/\[\]-][^\s@/\[\]]{0,252}", "a host name or an address; user and port have keys of their own"
    ),
    "user": nodes.text(r"[^\s@:/-][^\s@:/]{0,63}", "a login name"),
    "port": nodes.port,
    "identity": nodes.texts(r"[^\x00\n]{1,1024}", "the path of a private key file"),
    "jump": nodes.text(r"[^\s-][^\s]{0,1023}", "jump hosts as ssh's ProxyJump has them, such as user@bastion:2222"),
    "sudo": _sudo,
    "group": _WORD,
    "tags": nodes.texts(r"\w[\w.-]{0,62}", "a word of at most 63 letters, digits, '.', '_' and '-'"),
    "colour": nodes.choice(COLOURS),
    "production": nodes.flag,
    "price_per_hour": nodes.number(0, 1_000_000),
    "interval": _INTERVAL,
    "servers": _servers,
}
SETTINGS_KEYS: dict[str, Read] = {
    "interval": _INTERVAL,
    "thresholds": _thresholds,
    "droplets": _droplets,
}
