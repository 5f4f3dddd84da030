"""Where a DaemonSet's pods go: one for each node that its controller would choose, pinned to that node by name.

The controller checks the node selector, required node affinity and taints, and tolerates the taints that mark a node as unhealthy or
cordoned. It then replaces the required affinity by the node's name. The scheduler decides whether the pod fits on that node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from navarch.model.selectors import (
    first_untolerated,
    node_selector_matches,
    read_node_selector,
    read_taint,
    read_toleration,
)
from navarch.object_types import ReadOnlyManifest

_PREFIX = "node.kubernetes.io/"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def daemon_pods(template: ReadOnlyManifest, nodes: Iterable[ReadOnlyManifest]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(node name, pod spec) in the order of the nodes' names."""
    spec = dict(template.get("spec") or {})
    extra = _TOLERATED + ((("network-unavailable", "NoSchedule"),) if spec.get("hostNetwork") else ())
    given = list(spec.get("tolerations") or ())
    added = [{"key": _PREFIX + key, "operator": "Exists", "effect": effect} for key, effect in extra]
    spec["tolerations"] = given + [toleration for toleration in added if toleration not in given]
    affinity = spec.get("affinity") or {}
    required = read_node_selector((affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution"))
    tolerations = [read_toleration(toleration) for toleration in spec["tolerations"]]
    for node in sorted(nodes, key=lambda node: str(node["metadata"]["name"])):
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
            continue
        if required is not None and not node_selector_matches(required, labels, name):
            continue
        taints = [read_taint(taint) for taint in (node.get("spec") or {}).get("taints") or ()]
        if first_untolerated(taints, tolerations) is None:
            yield name, {**spec, "affinity": _pinned(affinity, name)}


def _pinned(affinity: ReadOnlyManifest, node: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    near = {**(affinity.get("nodeAffinity") or {}), "requiredDuringSchedulingIgnoredDuringExecution": required}
    return {**affinity, "nodeAffinity": near}
