"""The scheduler names that Navarch serves: the values of `spec.schedulerName` of the pods that it decides for.

`navarch run` serves the name `navarch`, or the names in its options. The embedded cluster has no other scheduler, so there it serves
the names of all schedulers that it is compatible with. A cluster does not say which names its scheduler serves; an embedded cluster is
recognised by the kubelet version of its hollow nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

OURS: Final = ("navarch",)
EMBEDDED: Final = ("navarch", "default-scheduler", "volcano", "kai-scheduler", "kube-batch")
_HOLLOW = "-navarch"


def served(given: Iterable[str], nodes: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The names that the user gives; otherwise the names that are served in the cluster of these Nodes.

    >>> sorted(served((), [])), sorted(served(["a"], []))
    (['navarch'], ['a'])
    >>> "volcano" in served((), [{"status": {"nodeInfo": {"kubeletVersion": "v1.36.0-navarch"}}}])
    True
    """
    names = frozenset(given)
    if names:
        return names
    return frozenset(EMBEDDED if any(_is_hollow(node) for node in nodes) else OURS)


def _is_hollow(node: Mapping[str, Any]) -> bool:
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("kubeletVersion", "")).endswith(_HOLLOW)
