"""Whose pods `navarch` decides for: the names that a pod's `spec.schedulerName` may have.

`navarch run` serves one name, or those it is told. In the embedded cluster there is no other scheduler, so there it serves all that
manifests of this field are likely to carry. Which names a cluster's scheduler serves is written nowhere in that cluster; an embedded
one is known by the kubelets of its hollow nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

OURS: Final = ("navarch",)
EMBEDDED: Final = ("navarch", "default-scheduler", "volcano", "kai-scheduler", "kube-batch")
_HOLLOW = "-navarch"


def served(given: Iterable[str], nodes: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """`given` by the user, if any; else what is served where these Node objects are.

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
