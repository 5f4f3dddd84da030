"""VolumeZone: a bound volume with a zone or region label can only be used there."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Rejection, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.model.objects import storage
from navarch.model.resources import BoolArray
from navarch.model.snapshot import Snapshot
from navarch.plugins.predicates.nodes.properties import NodeProperties, node_properties
from navarch.plugins.predicates.volumes.claims import find_claim, missing, storage_classes, unusable, versions, volumes

MESSAGE = "node(s) had no available volume zone"
GA_LABEL = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONE_LABELS = (*GA_LABEL, *GA_LABEL.values())


def zones(value: str) -> frozenset[str]:
    """The zones of a label, which may list several; an empty part makes the whole label void."""
    parts = frozenset(part.strip() for part in value.split("__"))
    return frozenset() if "" in parts else parts


class VolumeZone(NodeFilter):
    name = "VolumeZone"
    scope = Scope.STATIC
    reads_only_node_rules = True
    undone_by = (Event.VOLUME_CHANGED, Event.NODE_ADDED, Event.NODE_CHANGED)

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._known: dict[int, tuple[str, list[tuple[str, frozenset[str]]]]] = {}

    def identity(self) -> Hashable:
        return (VolumeZone, versions(self.snapshot, storage.CLAIM, storage.VOLUME))

    def applies(self, task: TaskClass) -> bool:
        used = task.shape.volumes
        if used is None or not any(not ephemeral for _, ephemeral in used.claims):
            return False
        problem, demands = self._look_up(task)
        return bool(problem or demands)

    def reject(self, task: TaskClass) -> Rejection | None:
        problem, _ = self._look_up(task)
        return unusable(problem) if problem else None

    def _look_up(self, task: TaskClass) -> tuple[str, list[tuple[str, frozenset[str]]]]:
        """What is wrong with the claims, or which labels must have which values."""
        found = self._known.get(task.number)
        if found is None:
            demands: list[tuple[str, frozenset[str]]] = []
            problem = ""
            for name, ephemeral in task.shape.volumes.claims if task.shape.volumes else ():
                if not ephemeral and not problem:
                    problem = self._demand(task.namespace, name, demands)
            found = self._known[task.number] = problem, demands
        return found

    def _demand(self, namespace: str, name: str, demands: list[tuple[str, frozenset[str]]]) -> str:
        if not name:
            return "PersistentVolumeClaim had no name"
        claim = find_claim(self.snapshot, namespace, name)
        if claim is None:
            return missing(name)
        if not claim.volume:
            return self._unbound(claim.storage_class)
        volume = volumes(self.snapshot).get(("", claim.volume))
        if volume is None:
            return f'persistentvolume "{claim.volume}" not found'
        for key in ZONE_LABELS:
            allowed = zones(volume.labels[key]) if key in volume.labels else frozenset()
            if allowed:
                demands.append((key, allowed))
        return ""

    def _unbound(self, name: str) -> str:
        if not name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        found = storage_classes(self.snapshot).get(("", name))
        if found is None:
            return f'storageclass.storage.k8s.io "{name}" not found'
        if found.binding_mode is None:
            return f'VolumeBindingMode not set for StorageClass "{name}"'
        return "" if found.binding_mode == storage.WAIT_FOR_CONSUMER else "PersistentVolume had no name"

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        problem, demands = self._look_up(task)
        columns = node_properties(self.snapshot)
        if problem:
            return np.zeros(len(columns), dtype=bool)[at.rows]
        passes = np.ones(len(columns), dtype=bool)
        for key, allowed in demands:
            passes &= _value_among(columns, key, allowed)
        unlabelled = np.ones(len(columns), dtype=bool)
        for key in ZONE_LABELS:
            unlabelled &= ~columns.label(key).present()
        out: BoolArray = (passes | unlabelled)[at.rows]
        return out

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        problem, _ = self._look_up(task)
        return [Refusal(problem or MESSAGE, ~self.mask(task, at), unresolvable=True, code="VolumeZone")]


def _value_among(columns: NodeProperties, key: str, allowed: frozenset[str]) -> BoolArray:
    """The node's label of this key, or where it has none its newer name."""
    column = columns.label(key)
    found = column.equals(allowed)
    newer = GA_LABEL.get(key)
    if newer is not None:
        found = np.where(column.present(), found, columns.label(newer).equals(allowed))
    return found
