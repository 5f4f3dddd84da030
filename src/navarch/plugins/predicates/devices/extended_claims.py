"""The claim that stands for a pod's extended resources, which differs between nodes.

A node that reports a resource serves it by its device plugin. On a node that does not report it, devices of the class behind the
resource serve it, by a claim that is made with the binding. So nodes are told apart by which of the pod's resources they report.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from navarch.engine.node_functions import TaskClass
from navarch.engine.session import Session
from navarch.model.objects.devices import DeviceDemand, ResourceClaimSpec
from navarch.model.resources import BoolArray, IntArray
from navarch.model.spec import Shape
from navarch.plugins.predicates.devices.extended_resources import class_behind

IN_MEMORY = "<extended-resources>"
"""The claim's name while it is not made; no object can have it."""
MOST_RESOURCES = 16
"""Of one pod: sets of them are counted in bits."""


class ExtendedClaim(Struct, frozen=True):
    """`where`: nodes that do not report these resources, and report the others of the pod. `claim` None: nothing is claimed there."""

    where: BoolArray
    claim: ResourceClaimSpec | None = None
    resources: tuple[tuple[str, str, str, int], ...] = ()
    """(resource, request, device class, count)"""


class ExtendedClaims:
    """One object a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._known: dict[tuple[Shape, str], list[ExtendedClaim]] = {}

    def concerns(self, shape: Shape) -> bool:
        """Whether a device class stands behind one of the resources."""
        return bool(shape.extended) and bool(self._classes(shape))

    def _classes(self, shape: Shape) -> list[tuple[str, str]]:
        found = ((name, class_behind(self.session.snapshot, name)) for name, _ in shape.extended)
        return [(name, device_class.name) for name, device_class in found if device_class is not None][:MOST_RESOURCES]

    def of(self, task: TaskClass) -> list[ExtendedClaim]:
        """The claims by nodes; empty: no node needs one."""
        if not task.shape.extended:
            return []
        key = task.shape, task.namespace
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._by_nodes(task.shape, task.namespace)
        return found

    def _by_nodes(self, shape: Shape, namespace: str) -> list[ExtendedClaim]:
        classes = self._classes(shape)
        lacks: IntArray = np.zeros(len(self.session.nodes), dtype=np.int64)
        space, allocatable = self.session.snapshot.space, self.session.nodes.allocatable
        for bit, (resource, _) in enumerate(classes):
            dim = space.find(resource)
            reported = allocatable[dim] > 0 if dim is not None and dim < len(allocatable) else np.zeros(len(lacks), dtype=bool)
            lacks += np.where(reported, 0, 1 << bit)
        if not lacks.any():
            return []
        requests = dict(shape.extended)
        out = []
        for pattern in np.unique(lacks).tolist():
            lacking = [each for bit, each in enumerate(classes) if pattern & 1 << bit]
            named = sorted(
                (name, device_class, count, resource) for resource, device_class in lacking for name, count in requests[resource]
            )
            claim = None
            if named:
                demands = tuple(DeviceDemand(name, device_class, count=count) for name, device_class, count, _ in named)
                claim = ResourceClaimSpec(namespace, IN_MEMORY, requests=demands)
            told = tuple((resource, name, device_class, count) for name, device_class, count, resource in named)
            out.append(ExtendedClaim(lacks == pattern, claim, told))
        return out
