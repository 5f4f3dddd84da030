"""NodeResourcesFit: free pod slots and free resources for everything the pod requests, by the requests of the pods on the node.

Each missing resource gives a reason. A request above what the empty node has cannot be helped by any eviction. An extended
resource that a node does not report may stand for devices; the device claims check those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.resources import PODS, BoolArray, is_extended
from navarch.plugins.predicates.devices.extended_resources import class_behind

TOO_MANY_PODS = "Too many pods"
_FIRST = ("pods", "cpu", "memory", "ephemeral-storage")


class NodeResourcesFit(NodeFilter):
    name = "NodeResourcesFit"
    scope = Scope.ROW
    figures_only = True
    undone_by = (Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED)

    def __init__(self, session: Session, ignored: Sequence[str] = (), ignored_groups: Sequence[str] = ()) -> None:
        self.session = session
        self.ignored = frozenset(ignored)
        self.ignored_groups = frozenset(ignored_groups)
        self._dims: dict[int, tuple[Rows, tuple[int, ...]]] = {}

    def _of(self, task: TaskClass) -> tuple[Rows, tuple[int, ...]]:
        """(columns to test, those among them where a node without any leaves the matter to claims)."""
        found = self._dims.get(task.number)
        if found is None:
            names = self.session.snapshot.resource_names
            tested = [d for d in np.flatnonzero(task.request).tolist() if d == PODS or not self._is_ignored(names[d])]
            tested.sort(key=lambda d: (_FIRST.index(names[d]) if names[d] in _FIRST else len(_FIRST), names[d]))
            left = tuple(d for d in tested if d > PODS and class_behind(self.session.snapshot, names[d]) is not None)
            found = self._dims[task.number] = np.array(tested, dtype=np.intp), left
        return found

    def _is_ignored(self, name: str) -> bool:
        if not (self.ignored or self.ignored_groups) or not is_extended(name):
            return False
        return name in self.ignored or name.partition("/")[0] in self.ignored_groups

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        dims, left = self._of(task)
        room = at.allocatable[dims]
        fits = task.request[dims, None] <= room - at.requested[dims]
        for dim in left:
            place = int(np.flatnonzero(dims == dim)[0])
            fits[place] |= room[place] == 0
        out: BoolArray = np.all(fits, axis=0)
        return out

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        dims, left = self._of(task)
        names = self.session.snapshot.resource_names
        short: list[tuple[int, BoolArray]] = []
        hopeless: BoolArray = np.zeros(at.requested.shape[1], dtype=bool)
        for dim in dims.tolist():
            room, request = at.allocatable[dim], int(task.request[dim])
            lacks = request > room - at.requested[dim]
            if dim in left:
                lacks &= room != 0
            if dim != PODS:
                hopeless |= lacks & (request > room)
            short.append((dim, lacks))
        return [
            Refusal(TOO_MANY_PODS if dim == PODS else f"Insufficient {names[dim]}", lacks, hopeless, "InsufficientResources")
            for dim, lacks in short
        ]
