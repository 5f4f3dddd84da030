"""Tests use only public names of the product, so that its parts can be rewritten behind them.

A test module may use a private name (`_name`) that it defines itself. It may not read or set the private attribute of anything else,
import a private name, or name one in a string for `getattr`, `setattr` or `patch`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
OF_LIBRARIES = {
    "_asdict": "of named tuples",
    "_collector_to_names": "of prometheus_client, which lists the collectors of a registry nowhere else",
    "_continue": "the field `continue` of the Python client for Kubernetes",
    "_labelnames": "of prometheus_client, as above",
    "_replace": "of named tuples",
    "_repr_html_": "the protocol of notebooks",
    "_stop_event": "of the Python client for Kubernetes, whose `stop` waits for the next event",
}
PATCHES = {"delattr", "getattr", "hasattr", "object", "patch", "setattr"}
DOTTED = re.compile(r"navarch(\.\w+)+")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_" and name not in OF_LIBRARIES


def own_names(tree: ast.Module) -> set[str]:
    """Names that the module defines: functions, classes, variables, fields, and attributes that its classes set on themselves."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
    return found


def named_in_strings(node: ast.Call) -> Iterator[str]:
    """Attributes that a call of `getattr`, `setattr`, `patch` and the like names."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in PATCHES:
        for argument in node.args[:2]:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                text = argument.value
                yield from text.split(".") if DOTTED.fullmatch(text) else [text]


def foreign_private_names(source: str) -> list[str]:
    """`line: name` for each private name of something else."""
    tree = ast.parse(source)
    own = own_names(tree)
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.Call):
            names = list(named_in_strings(node))
        else:
            continue
        found += [(node.lineno, name) for name in names if is_private(name) and name not in own]
    return [f"{line}: {name}" for line, name in sorted(set(found))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("queue._attempts", ["1: _attempts"]),
        ("class Test(Plugin):\n    def open(self):\n        self._session", ["3: _session"]),
        ("from navarch.cli.run import _run", ["1: _run"]),
        ("monkeypatch.setattr(pool, '_backoff', None)", ["1: _backoff"]),
        ("patch.object(DomainSearch, '_room', None)", ["1: _room"]),
        ("monkeypatch.setattr('navarch.embedded.log.SqliteLog._write', None)", ["1: _write"]),
        ("class World:\n    def __init__(self):\n        self._bound = []\nWorld()._bound", []),
        ("def _made(): ...\nimport made\nmade._made", []),
        ("term._replace(a=1), queue.attempts, queue.__class__", []),
    ],
)
def test_what_counts_as_a_foreign_private_name(source: str, expected: list[str]) -> None:
    assert foreign_private_names(source) == expected


def test_no_test_touches_a_private_name_of_the_product() -> None:
    found = {
        str(path.relative_to(TESTS)): names
        for path in sorted(TESTS.rglob("*.py"))
        if (names := foreign_private_names(path.read_text(encoding="utf-8")))
    }
    assert found == {}
