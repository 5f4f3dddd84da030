"""How deep a YAML text nests, before a parser in C is asked: that one recurses on the C stack and ends the process when it is full.

Only brackets and dashes in a row can nest deep in a file of sensible size; by indentation a few thousand levels take megabytes.
"""

from __future__ import annotations

import re

DEEPEST = 1000
"""Levels; the deepest objects of Kubernetes have some twenty."""
_BRACKETS = re.compile(r"[\[\]{}]")
_DASHES = re.compile(rf"(?:[-?] +){{{DEEPEST}}}")


def nests_too_deep(text: str) -> bool:
    """
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
