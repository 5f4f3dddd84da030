"""The plain paths of jq that Stages use to look into an object: `.status.phase`, `.metadata.annotations["a/b"]`, `.items.[].kind`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

_STEP = re.compile(r"""\.?\[\s*"((?:[^"\\]|\\.)*)"\s*\]|\.?\[(\d*)\]|\.([A-Za-z_][\w-]*)|\."([^"]*)\"""")
Find = Callable[[Any], list[Any]]


class PathError(ValueError):
    """Not a path that is understood."""


@lru_cache(maxsize=512)
def parse_path(text: str) -> Find:
    """A function that gives all values at a path; none where the path ends early.

    >>> parse_path('.metadata.ownerReferences.[].kind')({"metadata": {"ownerReferences": [{"kind": "Job"}]}})
    ['Job']
    >>> parse_path('.metadata.labels["a/b"]')({"metadata": {}})
    []
    """
    text = text.strip()
    steps: list[str | int | None] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            if text == ".":
                break
            raise PathError(f"found {text!r}, expected a plain path such as .status.phase")
        quoted, number, word, quoted_word = match.groups()
        if quoted is not None:
            steps.append(quoted.replace('\\"', '"'))
        elif number is not None:
            steps.append(int(number) if number else None)
        else:
            steps.append(word if word is not None else quoted_word)
        position = match.end()

    def find(obj: Any) -> list[Any]:
        values = [obj]
        for step in steps:
            values = [found for value in values for found in _step(value, step)]
        return [value for value in values if value is not None]

    return find


def _step(value: Any, step: str | int | None) -> list[Any]:
    if step is None:
        return list(value) if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    if isinstance(step, int):
        return [value[step]] if isinstance(value, list) and step < len(value) else []
    return [value[step]] if isinstance(value, dict) and step in value else []
