"""Merge patches (RFC 7396): what changed in a document since it was last sent."""

from __future__ import annotations

from typing import Any


def diff(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The patch that turns ``old`` into ``new``; empty where nothing changed.

    Both hold no None, for None in a patch removes: what is unknown is left out of a document. Values of the patch
    are those of ``new`` itself, not copies. Lists are replaced as a whole, as RFC 7396 has it.
    """
    patch: dict[str, Any] = {}
    for key, value in new.items():
        before = old.get(key)
        if type(value) is dict and type(before) is dict:
            inner = diff(before, value)
            if inner:
                patch[key] = inner
        elif value != before or type(value) is not type(before):
            patch[key] = value
    if len(new) != len(old) or not old.keys() <= new.keys():
        for key in old:
            if key not in new:
                patch[key] = None
    return patch


def merge(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """``document`` with ``patch`` applied; the arguments stay as they are."""
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif type(value) is dict:
            before = merged.get(key)
            merged[key] = merge(before if type(before) is dict else {}, value)
        else:
            merged[key] = value
    return merged
