"""Replaces names of other tenants in answers: `namespace/name` where the viewer may not see the namespace.

Texts of explanations and decisions name jobs and pods as `namespace/name`. A part of a text that looks so is replaced if its first
word is a namespace of the cluster that is hidden from the viewer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, Final

HIDDEN: Final = "(another namespace)"
_NAME: Final = re.compile(r"(?<![\w./-])(?:[A-Z]\w*/)?([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)((?:/[\w.:-]+)+)")
"""`namespace/name`, `namespace/kind/name`, or `Kind/namespace/name`."""


def hide_names(value: Any, namespaces: Collection[str], sees: Callable[[str], bool]) -> Any:
    """The same value without hidden names. `namespaces`: all that the cluster has.

    >>> hide_names({"text": "end cv/a-1, then nvidia.com/gpu"}, {"cv", "ml"}, lambda name: name == "ml")
    {'text': 'end (another namespace), then nvidia.com/gpu'}
    >>> hide_names(["Pod/cv/a", "Pod/ml/a"], {"cv", "ml"}, lambda name: name == "ml")
    ['(another namespace)', 'Pod/ml/a']
    """
    if isinstance(value, str):
        return _NAME.sub(lambda match: HIDDEN if match[1] in namespaces and not sees(match[1]) else match[0], value)
    if isinstance(value, dict):
        return {hide_names(key, namespaces, sees): hide_names(each, namespaces, sees) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [hide_names(each, namespaces, sees) for each in value]
    return value
