"""The load of nodes from a file or a Python mapping, for cycles without a cluster.

    n1: {cpu: {10m: 55}, memory: {10m: 40}, ageSeconds: 3}

Percent of the capacity of the node, by the period that the average covers, and how old the figures are at the moment of the cycle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from navarch.apis.errors import ObjectError
from navarch.model.node_load import NodeLoad
from navarch.offline.manifests import STDIN, stdin_text
from navarch.yaml_loading import Loader

KIND = "NodeMetrics"
_FIELDS = ("cpu", "memory", "ageSeconds")


def read_metrics(given: Mapping[str, Any], now: float) -> tuple[dict[str, NodeLoad], list[ObjectError]]:
    """The load of each node, and what is wrong in the others.

    >>> read_metrics({"n1": {"cpu": {"10m": 55}, "ageSeconds": 3}}, now=100.0)[0]["n1"]
    NodeLoad(cpu={'10m': 55.0}, memory={}, at=97.0)
    """
    found: dict[str, NodeLoad] = {}
    mistakes: list[ObjectError] = []
    for node, figures in sorted(given.items(), key=lambda item: str(item[0])):
        try:
            found[str(node)] = _load(str(node), figures, now)
        except ObjectError as error:
            mistakes.append(error)
    return found, mistakes


def metrics_file(path: str | Path) -> Mapping[str, Any]:
    """The mapping in a YAML or JSON file; `-` is standard input. Raises ObjectError."""
    try:
        text = stdin_text() if str(path) == STDIN else Path(path).read_text(encoding="utf-8")
        found = yaml.load(text, Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise ObjectError(KIND, str(path), "", "", f"a file that can be read as YAML or JSON, but: {reason}") from None
    if not isinstance(found, Mapping):
        raise ObjectError(KIND, str(path), "", _kind(found), "a mapping from the name of a node to its figures")
    return found


def _load(node: str, figures: object, now: float) -> NodeLoad:
    if not isinstance(figures, Mapping):
        raise ObjectError(KIND, node, "", _kind(figures), f"a mapping with {', '.join(_FIELDS)}")
    for name in figures:
        if name not in _FIELDS:
            raise ObjectError(KIND, node, str(name), "an unknown field", f"one of {', '.join(_FIELDS)}")
    age = figures.get("ageSeconds", 0)
    if not _is_number(age):
        raise ObjectError(KIND, node, "ageSeconds", repr(age), "a number of seconds")
    return NodeLoad(_percents(node, figures, "cpu"), _percents(node, figures, "memory"), now - float(age))


def _percents(node: str, figures: Mapping[str, Any], name: str) -> dict[str, float]:
    given = figures.get(name) or {}
    if not isinstance(given, Mapping):
        raise ObjectError(KIND, node, name, repr(given), "a mapping from a period to percent, such as {10m: 55}")
    for period, percent in given.items():
        if not _is_number(percent):
            raise ObjectError(KIND, node, f"{name}[{period}]", repr(percent), "percent, a number")
    return {str(period): float(percent) for period, percent in sorted(given.items(), key=lambda item: str(item[0]))}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _kind(value: object) -> str:
    return {"NoneType": "nothing", "list": "a list", "str": "a string"}.get(type(value).__name__, repr(value))
