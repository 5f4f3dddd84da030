"""A policy document with the line of each of its parts, so that a mistake can say where it stands.

Text is YAML (JSON is YAML too). A decoded mapping has no lines; everything else is the same. A ConfigMap that holds one
configuration is taken for what it holds, since that is how these files live in clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml
from msgspec import Struct, field

from navarch.engine.policy.values import Mistake, PolicyError
from navarch.yaml_loading import Loader

Path = tuple[str | int, ...]


class Source(Struct):
    """`lines` are counted from 1 and keyed by the way from the root; `from_text` is false for decoded mappings."""

    value: Mapping[str, object]
    name: str = ""
    lines: dict[Path, int] = field(default_factory=dict)
    duplicates: list[Path] = field(default_factory=list)
    from_text: bool = False

    def line(self, path: Path) -> int | None:
        """The line of a part, or of the nearest part around it that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def read(document: str | Mapping[str, object], name: str = "") -> Source:
    """
    >>> read("actions: allocate\\ntiers:\\n- plugins:\\n  - name: gang\\n").line(("tiers", 0, "plugins", 0, "name"))
    4
    """
    if not isinstance(document, str):
        return Source({str(key): value for key, value in document.items()}, name)
    source = _from_text(document, name, 0)
    inner = _config_map(source)
    return source if inner is None else _from_text(*inner)


def _from_text(text: str, name: str, offset: int) -> Source:
    source = Source({}, name, from_text=True)
    try:
        loader = Loader(text)
        try:
            node = loader.get_single_node()
            value = {} if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = None if mark is None else mark.line + 1 + offset
        lines = text.splitlines()
        tab = mark is not None and mark.line < len(lines) and "\t" in lines[mark.line][: mark.column + 1]
        problem = "found a tab where only spaces may indent" if tab else error.problem or error
        raise PolicyError(name, [Mistake(f"not valid YAML: {problem}", line=line)]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise PolicyError(name, [Mistake(f"not valid YAML: {error}")]) from error
    if node is None or not isinstance(value, dict):
        found = "nothing" if not value else f"a {type(value).__name__}"
        raise PolicyError(name, [Mistake(f"found {found}, expected a mapping with `actions` and `tiers`")])
    source.value = {str(key): part for key, part in value.items()}
    try:
        for path, line in _walk(node, (), source.duplicates):
            source.lines[path] = line + 1 + offset
    except RecursionError:
        raise PolicyError(name, [Mistake("an alias stands for something that holds the alias itself")]) from None
    return source


def _walk(node: yaml.Node, path: Path, duplicates: list[Path]) -> Iterator[tuple[Path, int]]:
    """Ways and lines. A key's line is its own, not its value's: that is where an editor should land."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            inner = (*path, str(key.value))
            if inner in seen:
                duplicates.append(inner)
            seen.add(inner)
            yield inner, key.start_mark.line
            yield from _walk(value, inner, duplicates)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            inner = (*path, index)
            yield inner, value.start_mark.line
            yield from _walk(value, inner, duplicates)


def _config_map(source: Source) -> tuple[str, str, int] | None:
    """(text, name, line offset) of the one configuration inside a ConfigMap."""
    if source.value.get("kind") != "ConfigMap":
        return None
    data = source.value.get("data")
    texts = {k: v for k, v in data.items() if isinstance(v, str)} if isinstance(data, Mapping) else {}
    if len(texts) != 1:
        found = ", ".join(sorted(texts)) or "none"
        mistake = Mistake(f"found the keys {found}, expected one with a configuration", "data", source.line(("data",)))
        raise PolicyError(source.name, [mistake])
    key, text = next(iter(texts.items()))
    return text, source.name, source.line(("data", key)) or 0
