"""config.example.yaml documents every key there is, and nothing else."""

import dataclasses
from pathlib import Path

import yaml

from console.domain.thresholds import Thresholds
from console.settings import load, schema

EXAMPLE = Path(__file__).parents[3] / "config.example.yaml"


def keys(node: object, path: str = "") -> set[str]:
    """Paths of all keys; names of droplets and places in lists left out."""
    found: set[str] = set()
    if isinstance(node, dict):
        for key, value in node.items():
            where = path + "<name>" if path == "droplets." else path + str(key)
            found |= {where} | keys(value, where + ".")
    elif isinstance(node, list):
        for value in node:
            found |= keys(value, path)
    return found


def schema_keys() -> set[str]:
    return (
        set(load.SETTINGS_KEYS)
        | {"droplets.<name>"}
        | {f"thresholds.{key}" for key in load.THRESHOLD_KEYS}
        | {f"droplets.<name>.{key}" for key in load.DROPLET_KEYS}
        | {f"droplets.<name>.servers.{key}" for key in load.SERVER_KEYS}
    )


def test_the_example_loads() -> None:
    settings = load.parse(EXAMPLE.read_text(encoding="utf-8"), str(EXAMPLE))
    assert [droplet.name for droplet in settings.droplets] == ["gpu-staging", "gpu-prod"]


def test_every_key_is_documented_and_every_documented_key_exists() -> None:
    assert keys(yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))) == schema_keys()


def test_the_example_shows_the_defaults_where_there_are_any() -> None:
    settings = load.parse(EXAMPLE.read_text(encoding="utf-8"), str(EXAMPLE))
    assert settings.thresholds == Thresholds()
    assert settings.interval == schema.Settings().interval


def test_keys_and_fields_are_the_same() -> None:
    def fields(kind: type) -> set[str]:
        return {field.name for field in dataclasses.fields(kind)}

    assert fields(schema.Settings) - {"file"} == set(load.SETTINGS_KEYS)
    assert fields(schema.Droplet) - {"name", "practice"} == set(load.DROPLET_KEYS)
    assert fields(Thresholds) == set(load.THRESHOLD_KEYS)
    assert fields(schema.Server) == set(load.SERVER_KEYS)
