"""Replaces names of other tenants in answers: `namespace/name` of namespaces, and names of queues, that the viewer may not see.

Texts of explanations and decisions name jobs and pods as `namespace/name`. A part of a text that looks so is replaced if its first
word is a hidden namespace. A word that is the name of a hidden queue is replaced wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

HIDDEN: Final = "(another namespace)"
HIDDEN_QUEUE: Final = "(another queue)"
_NAME: Final = re.compile(r"(?<![\w./-])(?:[A-Z]\w*/)?([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)((?:/[\w.:-]+)+)")
"""`namespace/name`, `namespace/kind/name`, or `Kind/namespace/name`."""


class HiddenNames:
    """
    >>> hidden = HiddenNames({"cv"}, {"cv-queue"})
    >>> hidden.hide({"text": "end cv/a-1 of cv-queue, then nvidia.com/gpu", "more": ["Pod/cv/a", "Pod/ml/a"]})
    {'text': 'end (another namespace) of (another queue), then nvidia.com/gpu', 'more': ['(another namespace)', 'Pod/ml/a']}
    """

    def __init__(self, namespaces: Collection[str], queues: Collection[str]) -> None:
        self._namespaces = frozenset(namespaces)
        words = "|".join(re.escape(name) for name in sorted(queues, key=lambda name: (-len(name), name)))
        self._queues = re.compile(rf"(?<![\w./-])(?:{words})(?![\w/-]|\.\w)") if words else None

    def hide(self, value: Any) -> Any:
        """The same value without hidden names. Keys of objects stay: they are no names of tenants."""
        if isinstance(value, str):
            text = _NAME.sub(lambda match: HIDDEN if match[1] in self._namespaces else match[0], value)
            return text if self._queues is None else self._queues.sub(HIDDEN_QUEUE, text)
        if isinstance(value, dict):
            return {key: self.hide(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide(each) for each in value]
        return value
