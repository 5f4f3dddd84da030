"""Manifests from files: YAML or JSON, several documents in a file, lists as `kubectl get -o yaml` prints them, directories, stdin.

Every object keeps its source, so that a mistake can be found. A file that cannot be read is one mistake; the other files are read.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from navarch.apis.errors import ObjectError, shown
from navarch.object_types import ReadOnlyManifest
from navarch.yaml_loading import Loader

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"
VOLCANO_GROUP = "scheduling.volcano.sh/"
_BLANK = re.compile(r"(?:\s|#[^\n]*+|---|\.\.\.)*+\Z")
"""Matches a text without any document. kubectl prints an empty list if it finds nothing, which is a document."""
_DEEPEST = 16
"""The deepest nesting of lists. A YAML alias can make a list contain itself."""


class Document(Struct, frozen=True):
    """A decoded manifest and its source: `jobs.yaml document 2`, with ` item 3` inside a list."""

    manifest: ReadOnlyManifest
    source: str = ""
    made_by: tuple[str, str, str] | None = None
    """For an object that a controller would make: kind and name of its workload, and the field of the workload that defines it."""


def read_paths(paths: Iterable[str | Path]) -> tuple[list[Document], list[ObjectError]]:
    """The objects of all files in the order given, and the mistakes. Directories are read recursively, by name."""
    documents: list[Document] = []
    mistakes: list[ObjectError] = []
    for path in paths:
        for file in _files(str(path), mistakes):
            try:
                text = stdin_text() if file == STDIN else Path(file).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
                mistakes.append(ObjectError("File", file, "", "", f"a file that can be read, but: {reason}"))
                continue
            name = "stdin" if file == STDIN else file
            if file == str(path) and _BLANK.match(text):
                mistakes.append(ObjectError("File", name, "", "nothing", "objects in YAML or JSON"))
                continue
            for found in read_text(text, name):
                if isinstance(found, ObjectError):
                    mistakes.append(found)
                else:
                    documents.append(_with_state(found))
    return documents, mistakes


def _with_state(document: Document) -> Document:
    """A Volcano Queue without a state is Open: no controller has written a state into a file, as it does in a cluster."""
    manifest = document.manifest
    if manifest.get("kind") != "Queue" or not str(manifest.get("apiVersion")).startswith(VOLCANO_GROUP):
        return document
    status = manifest.get("status")
    if not isinstance(status, Mapping | None) or (status or {}).get("state"):
        return document
    return Document({**manifest, "status": {**(status or {}), "state": "Open"}}, document.source, document.made_by)


def stdin_text() -> str:
    """Standard input as UTF-8: clients of Kubernetes write UTF-8 in every locale."""
    binary = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if binary is None else binary.read().decode()


def read_text(text: str, name: str) -> Iterator[Document | ObjectError]:
    """The objects of one text, with the items of lists as objects."""
    number = 0
    try:
        for number, decoded in enumerate(_decoded(text), start=1):
            if decoded is not None:
                yield from objects_in(decoded, f"{name} document {number}")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1} column {mark.column + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        if mark is not None and _is_tab(text, mark.line, mark.column):
            problem = "found a tab where only spaces may indent"
        yield _unreadable(name, f"{name} document {number + 1}{place}", problem)
    except RecursionError:
        yield _unreadable(name, f"{name} document {number + 1}", "it is nested too deep")
    except ValueError as error:  # a number of thousands of digits
        yield _unreadable(name, f"{name} document {number + 1}", str(error).partition(";")[0])


def _unreadable(name: str, source: str, problem: str) -> ObjectError:
    return ObjectError("File", name, "", "", f"YAML or JSON, but: {problem}; nothing from there on is read", source)


def objects_in(decoded: object, source: str = "", depth: int = 0) -> Iterator[Document | ObjectError]:
    """One object, or the items of a `List`. Items of a typed list such as PodList need not repeat their kind."""
    if depth > _DEEPEST:
        yield ObjectError("List", "?", "items", "itself", "lists no more than a few deep", source.partition(" item ")[0])
    elif isinstance(decoded, list):
        for i, item in enumerate(decoded, start=1):
            yield from objects_in(item, _item(source, i), depth + 1)
    elif not isinstance(decoded, Mapping):
        yield ObjectError("Object", "?", "", shown(decoded), "a mapping with apiVersion, kind and metadata", source)
    elif str(decoded.get("kind", "")).endswith("List") and "items" in decoded:
        kind = decoded["kind"].removesuffix("List")
        items = decoded["items"]
        if not isinstance(items, list | None):
            yield ObjectError(decoded["kind"], "?", "items", shown(items), "a list", source)
            return
        for i, item in enumerate(items or (), start=1):
            if kind and isinstance(item, Mapping) and not item.get("kind"):
                item = {"apiVersion": decoded.get("apiVersion"), **item, "kind": kind}
            yield from objects_in(item, _item(source, i), depth + 1)
    else:
        yield Document(decoded, source)


def _item(source: str, number: int) -> str:
    return f"{source} item {number}" if source else f"object {number}"


def _is_tab(text: str, line: int, column: int) -> bool:
    lines = text.splitlines()
    return line < len(lines) and lines[line][column : column + 1] == "\t"


def _files(path: str, mistakes: list[ObjectError]) -> list[str]:
    if path == STDIN or not Path(path).is_dir():
        return [path]
    found = sorted(str(file) for file in Path(path).rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not found:
        mistakes.append(ObjectError("Directory", path, "", "nothing", "files that end in .yaml, .yml or .json"))
    return found


def _decoded(text: str) -> Iterator[object]:
    if text.lstrip()[:1] in ("{", "["):
        # JSON is a hundred times faster to read than YAML. A text that only looks like JSON is read as YAML.
        try:
            decoded = [msgspec.json.decode(text)]
        except msgspec.DecodeError:
            decoded = _stream(text)
        if decoded:
            yield from decoded
            return
    yield from yaml.load_all(text, Loader=_Loader)


def _stream(text: str) -> list[Any]:
    """JSON objects one after another, as several `kubectl get -o json` commands write them into one file."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        try:
            decoded, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            return []
        found.append(decoded)
        while at < len(text) and text[at].isspace():
            at += 1
    return found


class _Loader(Loader):
    """Refuses a key that is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        own = node.value
        built: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        if len(built) < len(node.value):  # a key given twice, or one before a merge key `<<`
            seen: set[Any] = set()
            for key, _ in own:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} is given twice", key.start_mark)
                seen.add(key.value)
        return built
