from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.domain.facts.model import Facts
from console.domain.facts.read import NotFactsError, read_facts

CAPTURED = Path(__file__).parents[2] / "data" / "facts" / "bookworm.json"


def captured() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(CAPTURED.read_text(encoding="utf-8"))
    return document


def test_the_facts_of_a_real_droplet() -> None:
    facts = read_facts(captured())
    assert facts.os is not None
    assert facts.os.pretty_name == "Debian GNU/Linux 12 (bookworm)"
    assert facts.docker is not None
    assert facts.docker.version == "20.10.24+dfsg1"
    assert facts.units is not None
    assert facts.units.units["docker.service"].enabled == "enabled"
    assert facts.listeners is not None
    assert {listener.unit for listener in facts.listeners if listener.port == 53} == {"systemd-resolved.service"}
    assert facts.firewall is not None
    assert facts.firewall.ufw is not None
    assert facts.firewall.nft is None
    assert facts.why("/firewall/nft") == "nft is not installed"
    assert facts.resolver is not None
    assert facts.resolver.text is not None
    assert facts.resolver.text.count("\n") > 10
    assert facts.triton == ()


def test_a_server_with_models() -> None:
    document = {
        "schema": "facts/1",
        "triton": [
            {
                "name": "triton",
                "ready": False,
                "command": ["tritonserver", "--model-repository=/m"],
                "repositories": [{"path": "s3://b", "kind": "s3", "writable": False, "reason": "in a bucket"}],
                "models": [
                    {
                        "name": "echo",
                        "repository": 0,
                        "also_in": [1, "x", -1],
                        "versions": ["1"],
                        "states": [{"version": "1", "state": "READY"}, {"state": "READY"}],
                        "config": 'name: "echo"\n\tmax_batch_size: 8\n',
                        "config_sha256": "00",
                    },
                    {"repository": 0},
                ],
            },
            {"how": "unit"},
        ],
    }
    facts = read_facts(document)
    assert facts.triton is not None
    (server,) = facts.triton
    assert server.ready is False
    assert server.live is None
    assert server.repositories[0].reason == "in a bucket"
    (model,) = server.models
    assert model.config == 'name: "echo"\n\tmax_batch_size: 8\n'
    assert model.also_in == (1,)
    assert [state.version for state in model.states] == ["1"]


@pytest.mark.parametrize("document", [None, [], "facts", {}, {"schema": "facts/2"}, {"schema": ["facts/1"]}])
def test_what_is_not_facts_is_refused(document: object) -> None:
    with pytest.raises(NotFactsError):
        read_facts(document)


def test_strings_are_made_printable_and_raw_texts_are_kept() -> None:
    evil = "\x1b[2J\u202e\x00"
    facts = read_facts(
        {
            "schema": "facts/1",
            "os": {"id": evil},
            "units": {"units": {evil: {"active": evil}}, "failed": [evil, 5]},
            "firewall": {"nft": evil + "\ud800"},
            "unavailable": {evil: evil, "/x": 5},
        }
    )
    assert facts.os is not None
    assert facts.os.id is not None
    assert facts.os.id.isprintable()
    assert facts.units is not None
    assert all(name.isprintable() for name in facts.units.units)
    assert facts.firewall is not None
    assert facts.firewall.nft == evil + "?"
    assert all(key.isprintable() and value.isprintable() for key, value in facts.unavailable.items())


def test_wrong_types_read_as_missing_with_a_reason() -> None:
    facts = read_facts(
        {"schema": "facts/1", "uid": True, "time": "now", "kernel": 5, "os": {"id": ["x"]}, "disks": {}}
    )
    assert facts.uid is None
    assert facts.time is None
    assert facts.os is not None
    assert facts.os.id is None
    assert facts.why("/os/id") == "the droplet sent something else than a text"
    assert facts.why("/uid") == "the droplet sent something else than a whole number"
    assert facts.why("/disks") == "the droplet sent something else than a list"
    assert facts.why("/kernel") == "the droplet sent something else than an object"


def test_lists_are_bounded() -> None:
    document = {
        "schema": "facts/1",
        "listeners": [{"protocol": "tcp", "address": "::", "port": 1}] * 5000,
        "unavailable": {f"/{number}": "x" for number in range(10_000)},
        "os": {"id": "x" * (1 << 20)},
    }
    facts = read_facts(document)
    assert facts.listeners is not None
    assert len(facts.listeners) == 1000
    assert len(facts.unavailable) == 2000
    assert facts.os is not None
    assert len(facts.os.id or "") == 512


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20))
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_document_makes_it_fail(data: st.DataObject) -> None:
    document = captured()
    for _ in range(data.draw(st.integers(1, 4))):
        spoil(document, data)
    document["schema"] = "facts/1"
    assert isinstance(read_facts(document), Facts)


def spoil(node: Any, data: st.DataObject) -> None:
    """Put anything somewhere into the document."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if isinstance(node[key], (dict, list)) and data.draw(st.booleans()):
            node = node[key]
        else:
            node[key] = data.draw(VALUES)
            return
