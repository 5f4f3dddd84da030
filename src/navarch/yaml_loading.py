"""One YAML loader for manifests, policy files and request bodies, safe for text that a stranger wrote.

Values are read as clients of the Kubernetes API read them: a time stays text, and `1:59:59` is text and not a number in base sixty.

Two kinds of text would end the process, so they are refused before they are built:
- Deep nesting. The parser in C recurses on the C stack.
- Aliases that refer to aliases ("billion laughs"). A text of 1,000 bytes can stand for a billion values.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

DEEPEST = 1000
"""Levels of nesting. The deepest objects of Kubernetes have some twenty."""
MOST_ALIASED = 100_000
"""Values that all aliases of one document may stand for together."""
_BRACKETS = re.compile(r"[\[\]{}]")
_DASHES = re.compile(rf"(?:[-?] +){{{DEEPEST}}}")
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def nests_too_deep(text: str) -> bool:
    """
    Only brackets and dashes in a row can nest deep in a file of sensible size. By indentation a few thousand levels take megabytes.

    >>> nests_too_deep("a: [1, {b: 2}]"), nests_too_deep("a: " + "[" * 2000), nests_too_deep("- " * 2000)
    (False, True, True)
    """
    if text.count("[") + text.count("{") > DEEPEST:
        depth = 0
        for bracket in _BRACKETS.findall(text):
            depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
            if depth > DEEPEST:
                return True
    return _DASHES.search(text) is not None


class Loader(_Base):  # type: ignore[misc]
    """A safe loader with Kubernetes' reading of plain values and a bound on aliases."""

    def __init__(self, text: str) -> None:
        if nests_too_deep(text):
            raise yaml.YAMLError("it is nested too deep")
        super().__init__(text)
        self._has_aliases = "*" in text and "&" in text

    def get_node(self) -> yaml.Node | None:
        return self._bounded(super().get_node())

    def get_single_node(self) -> yaml.Node | None:
        return self._bounded(super().get_single_node())

    def _bounded(self, node: yaml.Node | None) -> yaml.Node | None:
        if node is not None and self._has_aliases:
            _check_aliases(node)
        return node


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":int", ":float"))]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"),
    list("-+0123456789."),
)
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^[-+]?(?:0b[0-1_]+|0o?[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    list("-+0123456789"),
)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _check_aliases(root: yaml.Node) -> None:
    """Raise if a node contains itself, or if aliases stand for too many values. Each node is visited once."""
    sizes: dict[int, int] = {}
    under_way: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, children_are_done = stack.pop()
        mark = id(node)
        if children_are_done:
            under_way.discard(mark)
            sizes[mark] = 1 + sum(sizes[id(child)] for child in _children(node))
        elif mark in under_way:
            raise yaml.composer.ComposerError(None, None, "an alias stands for a value that contains the alias", node.start_mark)
        elif mark not in sizes:
            under_way.add(mark)
            stack.append((node, True))
            stack.extend((child, False) for child in _children(node))
    if sizes[id(root)] - len(sizes) > MOST_ALIASED:
        raise yaml.composer.ComposerError(None, None, f"aliases stand for more than {MOST_ALIASED} values", root.start_mark)
