"""Nodes as people see them: what they have and what is used of it, by the scheduler's own count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from navarch.model.cluster import Cluster
from navarch.model.status import IS_TERMINAL
from navarch.views.quantities import Amounts, quantities


@dataclass(frozen=True)
class NodeRow:
    name: str
    status: str
    zone: str
    allocatable: Amounts
    used: Amounts
    created: float
    labels: Mapping[str, str] = field(default_factory=dict)
    resource: str = "node"

    @property
    def identity(self) -> tuple[str, str, str]:
        return "", self.resource, self.name

    @property
    def titles(self) -> frozenset[str]:
        """All that a user may type for it."""
        return frozenset((self.name, f"node/{self.name}"))

    @property
    def label_sets(self) -> Sequence[Mapping[str, str]]:
        return (self.labels,)

    def to_dict(self) -> dict[str, Any]:
        free = {name: amount - self.used.get(name, 0) for name, amount in self.allocatable.items()}
        return {
            "name": self.name,
            "status": self.status,
            "zone": self.zone,
            "allocatable": quantities(self.allocatable),
            "used": quantities(self.used),
            "free": quantities(free),
        }


def node_rows(cluster: Cluster) -> list[NodeRow]:
    """One row a node, by name."""
    shared = _shared_devices(cluster)
    rows = (node_row(cluster, name, len(shared.get(name, ()))) for name in sorted(cluster.nodes.rows.of))
    return [row for row in rows if row is not None]


def node_row(cluster: Cluster, name: str, shared: int) -> NodeRow | None:
    """One node; None: it has no object. `shared`: how many of its devices pods share."""
    table, names = cluster.nodes, cluster.space.names
    row = table.rows.of.get(name)
    spec = table.specs[row] if row is not None else None
    if row is None or spec is None:
        return None
    status = "Ready" if spec.ready else "NotReady"
    if spec.unschedulable:
        status += ",SchedulingDisabled"
    size = table.used.shape[0]
    used = {each: int(table.used[i, row]) for i, each in enumerate(names[:size]) if table.used[i, row]}
    device = next((each for each in dict(spec.allocatable) if each.endswith("/gpu")), "") if shared else ""
    if device:
        used[device] = used.get(device, 0) + 1000 * shared
    return NodeRow(
        name=name,
        status=status,
        zone=spec.labels.get("topology.kubernetes.io/zone", ""),
        allocatable=dict(spec.allocatable),
        used=used,
        created=spec.created,
        labels=spec.labels,
    )


def _shared_devices(cluster: Cluster) -> dict[str, set[str]]:
    """Node -> its devices that pods share. Resource lists do not have their shares, but a shared device is not free."""
    found: dict[str, set[str]] = {}
    for task in cluster.tasks.specs:
        if task is not None and task.gpu_groups and task.node and not IS_TERMINAL[task.status]:
            found.setdefault(task.node, set()).update(task.gpu_groups)
    return found
