"""Completion indexes of an Indexed Job: which are done, which come next, and their short form `0-3,7`."""

from __future__ import annotations

from collections.abc import Iterable

from navarch.object_types import Manifest

INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: Manifest) -> int | None:
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdecimal() else None


def parse_indexes(text: str) -> set[int]:
    """
    >>> sorted(parse_indexes("0-2,5"))
    [0, 1, 2, 5]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """
    >>> format_indexes({0, 1, 2, 5, 7, 8})
    '0-2,5,7,8'
    """
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    parts = []
    for first, last in spans:
        parts.append(str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}")
    return ",".join(parts)


def with_index(spec: Manifest, job: str, index: int) -> Manifest:
    """A pod spec that knows its index: host name and environment."""
    field = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": field}
    made = {**spec, "hostname": spec.get("hostname") or f"{job}-{index}"}
    for part in ("containers", "initContainers"):
        if spec.get(part):
            made[part] = [_with_variable(container, variable) for container in spec[part]]
    return made


def _with_variable(container: Manifest, variable: Manifest) -> Manifest:
    given = container.get("env") or []
    if any(each["name"] == variable["name"] for each in given):
        return container
    return {**container, "env": [*given, variable]}
