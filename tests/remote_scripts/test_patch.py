from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from remote_scripts.patch import diff, merge

LEAVES = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8))
DOCUMENTS = st.dictionaries(
    st.text(max_size=3),
    st.recursive(
        LEAVES | st.lists(LEAVES, max_size=3), lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_size=5,
)


@given(DOCUMENTS, DOCUMENTS)
def test_a_patch_leads_from_any_document_to_any_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert json.dumps(merge(old, diff(old, new)), sort_keys=True) == json.dumps(new, sort_keys=True)


@given(DOCUMENTS)
def test_nothing_changed_is_an_empty_patch(document: dict[str, Any]) -> None:
    assert diff(document, json.loads(json.dumps(document))) == {}


@given(DOCUMENTS, DOCUMENTS)
def test_a_patch_holds_null_only_for_what_went(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = diff(old, new)
    assert all(key in old and key not in new for key, value in patch.items() if value is None)


def test_an_empty_branch_that_came_is_in_the_patch() -> None:
    assert diff({}, {"servers": {}}) == {"servers": {}}


def test_an_object_that_became_a_number_is_replaced() -> None:
    assert diff({"a": {"b": 1}}, {"a": 2}) == {"a": 2}


def test_true_is_not_one() -> None:
    assert diff({"a": 1}, {"a": True}) == {"a": True}


def test_only_what_changed_travels() -> None:
    old = {"servers": {"a": {"state": "ready", "models": {"m": {"1": {"success": 1, "fail": 0}}}}}}
    new = {"servers": {"a": {"state": "ready", "models": {"m": {"1": {"success": 2, "fail": 0}}}}}}
    assert diff(old, new) == {"servers": {"a": {"models": {"m": {"1": {"success": 2}}}}}}
