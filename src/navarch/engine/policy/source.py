"""A policy document with the line of each of its parts, so that a mistake can say where it stands.

Text is YAML (JSON is YAML too). A decoded mapping has no lines; everything else is the same. A ConfigMap that holds one
configuration is taken for what it holds, since that is how these files live in clusters. Several documents of Kubernetes objects are
taken as one list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml
from msgspec import Struct, field

from navarch.engine.policy.values import Mistake, PolicyError, found_as
from navarch.yaml_loading import Loader

Path = tuple[str | int, ...]


class Source(Struct):
    """`lines` are counted from 1 and keyed by the way from the root; `from_text` is false for decoded mappings."""

    value: Mapping[str, object]
    name: str = ""
    lines: dict[Path, int] = field(default_factory=dict)
    duplicates: list[Path] = field(default_factory=list)
    from_text: bool = False
    origin: dict[Path, Path] = field(default_factory=dict)
    """For a document that was made from another: where a part of it comes from."""
    remarks: list[tuple[Path, str]] = field(default_factory=list)
    """Warnings about parts of that other document."""
    made_from: str = ""
    """What that other document is; empty: this is the user's own."""
    config_map_key: str = ""
    """The key of the ConfigMap that the document comes from, if the key tells whose it is. `compat` then says so too."""

    def shown(self, path: Path) -> Path:
        """The way to a part in the user's own document."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.origin:
                return (*self.origin[path[:end]], *path[end:])
        return path

    def line(self, path: Path) -> int | None:
        """The line of a part, or of the nearest part around it that has one."""
        path = self.shown(path)
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
    key = _config_map_key(source)
    if key is None:
        return source
    data = source.value["data"]
    assert isinstance(data, Mapping)
    inner = _from_text(data[key], name, source.line(("data", key)) or 0)
    if is_of_volcano(key) and "compat" not in inner.value:
        inner.value, inner.config_map_key = {**inner.value, "compat": "volcano"}, key
    return inner


def _from_text(text: str, name: str, offset: int) -> Source:
    source = Source({}, name, from_text=True)
    try:
        loader = Loader(text)
        try:
            nodes: list[yaml.Node] = []
            while loader.check_node() and (each := loader.get_node()) is not None:
                nodes.append(each)
            values = [loader.construct_document(node) for node in nodes]
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
    if len(values) > 1 and all(isinstance(each, dict) and "kind" in each for each in values):
        return _several(source, nodes, values, offset)
    if len(values) > 1:
        raise PolicyError(name, [Mistake(f"found {len(values)} documents, expected one", line=nodes[1].start_mark.line + 1 + offset)])
    node, value = (nodes[0], values[0]) if nodes else (None, {})
    if node is None or not isinstance(value, dict):
        found = "nothing" if value in (None, {}, "") else found_as(value)
        raise PolicyError(name, [Mistake(f"found {found}, expected a mapping with `actions` and `tiers`")])
    source.value = {str(key): part for key, part in value.items()}
    try:
        for path, line in _walk(node, (), source.duplicates):
            source.lines[path] = line + 1 + offset
    except RecursionError:
        raise PolicyError(name, [Mistake("an alias stands for something that holds the alias itself")]) from None
    return source


def _several(source: Source, nodes: list[yaml.Node], values: list[object], offset: int) -> Source:
    """Objects in one text, as `kubectl get -o yaml` would list them."""
    source.value = {"apiVersion": "v1", "kind": "List", "items": values}
    for index, node in enumerate(nodes):
        for path, line in _walk(node, ("items", index), source.duplicates):
            source.lines[path] = line + 1 + offset
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


def _config_map_key(source: Source) -> str | None:
    """The key of the one configuration inside a ConfigMap; None: the document is no ConfigMap."""
    if source.value.get("kind") != "ConfigMap":
        return None
    data = source.value.get("data")
    keys = [str(key) for key, text in data.items() if isinstance(text, str)] if isinstance(data, Mapping) else []
    of_volcano = [key for key in keys if is_of_volcano(key)]
    if len(keys) != 1 and len(of_volcano) != 1:
        found = ", ".join(sorted(keys)) or "none"
        mistake = Mistake(f"found the keys {found}, expected one with a configuration", "data", source.line(("data",)))
        raise PolicyError(source.name, [mistake])
    return keys[0] if len(keys) == 1 else of_volcano[0]


def is_of_volcano(key: str) -> bool:
    """Whether Volcano's installation keeps its configuration under this key of a ConfigMap.

    >>> is_of_volcano("volcano-scheduler.conf"), is_of_volcano("volcano-scheduler-ci.conf"), is_of_volcano("config.yaml")
    (True, True, False)
    """
    return key.startswith("volcano-scheduler") and key.endswith(".conf")
