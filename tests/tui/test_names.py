"""Textual's own attributes are private by an underscore alone: one of ours of that name breaks it silently."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil

import pytest
from textual.app import App
from textual.containers import Horizontal
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

import console.tui

TAKEN = {
    *vars(Widget()), *vars(Screen()), *vars(ModalScreen()), *vars(Horizontal()), *vars(App()),
    *dir(Widget), *dir(Screen), *dir(ModalScreen), *dir(App),
}  # fmt: skip
MEANT = {"_modes", "_fatal_error", "theme", "running_loop"}
"""The app fills in its modes and prints its own end."""


def ours() -> list[type[DOMNode]]:
    found = []
    for module in pkgutil.walk_packages(console.tui.__path__, "console.tui."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__ == module.name and issubclass(kind, DOMNode):
                found.append(kind)
    return found


@pytest.mark.parametrize("kind", ours(), ids=lambda kind: kind.__name__)
def test_no_private_name_of_ours_is_one_of_textuals(kind: type[DOMNode]) -> None:
    tree = ast.parse(inspect.cleandoc("\n") + inspect.getsource(kind))
    assigned = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    private = {name for name in assigned | defined if name.startswith("_") and not name.startswith("__")}
    assert (private & TAKEN) - MEANT == set()
