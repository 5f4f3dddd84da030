"""Amounts of tasks and nodes in the three resources of KAI's fair shares: millicores, bytes, and GPUs.

All GPUs count equally: a whole device of a device plugin counts one, a MIG slice as many as its profile says (`mig-3g.20gb`:
three), a fraction its part, a device of a dynamic claim one. A request for GPU memory counts by the memory of a GPU: that of its
node, rounded up to hundredths; while it is pending, that of the smallest GPU in the cluster; for limits that of the largest,
because its node is not known yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from navarch.model.gpus import GPU_RESOURCES, UNKNOWN_GPU_MEMORY, gpu_portion, mig_gpus
from navarch.model.label_syntax import parse_count
from navarch.model.node_facts import gpu_memories, node_fact, node_is_usable, usable_nodes
from navarch.model.spec import NodeSpec, Shape
from navarch.model.status import ON_NODE
from navarch.plugins.kai.proportion.share_division import Floats

if TYPE_CHECKING:
    from navarch.engine.session import Session

CPU, MEMORY, GPU = range(3)
RESOURCES: Final = ("cpu", "memory", "gpu")
GPU_CLASSES: Final = frozenset({"nvidia.com/gpu", "amd.com/gpu", "gpu.nvidia.com", "gpu.amd.com"})
"""Device classes, and drivers of resource slices, whose devices are GPUs."""
KAI_APPS: Final = frozenset({"kai-resource-reservation", "scaling-pod"})
"""Label `app` of the pods by which KAI's binder holds shared GPUs and its node scale adjuster asks for nodes."""


def node_amounts(node: NodeSpec) -> Floats:
    """The amounts that a node has."""
    out = np.zeros(len(RESOURCES))
    for name, amount in node.allocatable:
        _add(out, name, amount)
    return out


def shape_amounts(shape: Shape, memory: int | None, claimed: float = 0.0) -> Floats:
    """The amounts that a task of this shape counts for. `memory` is the memory of the GPU by which requests for GPU memory are
    measured; None: unknown, and such requests count nothing. `claimed`: GPUs of dynamic claims."""
    out = np.zeros(len(RESOURCES))
    for name, amount in shape.requests:
        _add(out, name, amount)
    devices = shape.devices
    if devices is not None and devices.fraction:
        out[GPU] = devices.count * devices.fraction / 1000
    elif devices is not None and devices.memory:
        out[GPU] = devices.count * devices.memory / memory if memory else 0.0
    for name, count in shape.hints:
        # Slices asked for by annotation, the old way: no node serves them, but they are asked for.
        if (gpus := mig_gpus(name)) and (number := parse_count(count)) is not None:
            out[GPU] += gpus * number
    out[GPU] += claimed
    return out


def _add(out: Floats, name: str, amount: int) -> None:
    if name == "cpu":
        out[CPU] += amount
    elif name == "memory":
        out[MEMORY] += amount
    elif name in GPU_RESOURCES:
        out[GPU] += amount / 1000
    elif gpus := mig_gpus(name):
        out[GPU] += gpus * amount / 1000


class KaiAmounts:
    """The amounts of one session, looked up by task row and computed once for each shape. Made with `Session.shared`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.memory = gpu_memories(session.snapshot)
        known = self.memory[self.memory > UNKNOWN_GPU_MEMORY]
        self.least_memory = int(known.min()) if len(known) else None
        self.most_memory = int(known.max()) if len(known) else None
        self._claims: Mapping[tuple[str, str], Any] = session.snapshot.objects.get("ResourceClaim", {})
        self._pending: dict[int, Floats] = {}
        self._limit: dict[int, Floats] = {}
        self._placed: dict[tuple[int, int], Floats] = {}

    def total(self) -> Floats:
        """The amounts of all ready nodes, without what pods of other schedulers hold there."""
        snapshot = self.session.snapshot
        out = node_fact(snapshot, "fair total", _total).copy() - self._held_by_others()
        for name, count in self.sliced_gpus().items():
            row = snapshot.nodes.row(name)
            out[GPU] += count if row is not None and usable_nodes(snapshot)[row] else 0
        return out

    def _held_by_others(self) -> Floats:
        """What pods without a job hold on ready nodes. Pods of KAI itself, which hold shared GPUs or ask for nodes, do not count."""
        snapshot = self.session.snapshot
        tasks, out = snapshot.tasks, np.zeros(len(RESOURCES))
        rows = np.flatnonzero(tasks.alive & (tasks.job < 0) & ON_NODE[tasks.status] & (tasks.node >= 0))
        if not len(rows):
            return out
        rows = rows[usable_nodes(snapshot)[tasks.node[rows]]]
        own = [n for n in np.unique(tasks.labels[rows]).tolist() if dict(snapshot.identities[n][1]).get("app") in KAI_APPS]
        rows = rows[~np.isin(tasks.labels[rows], own)]
        shapes, counts = np.unique(self.session.shape[rows], return_counts=True)
        for number, count in zip(shapes.tolist(), counts.tolist()):
            out += count * shape_amounts(snapshot.shapes[number], self.least_memory)
        return out

    def pending(self, task: int) -> Floats:
        """What the task requests while its node is not known."""
        number = int(self.session.shape[task])
        found = self._pending.get(number)
        if found is None:
            shape = self.session.snapshot.shapes[number]
            found = self._pending[number] = shape_amounts(shape, self.least_memory, self._claimed(shape))
        return found

    def asked(self, task: int) -> Floats:
        """What the task requests explicitly: a request for GPU memory counts no GPU."""
        devices = self.session.snapshot.shapes[int(self.session.shape[task])].devices
        if devices is None or not devices.memory:
            return self.pending(task)
        found = self.pending(task).copy()
        found[GPU] = 0.0
        return found

    def at_least(self, task: int) -> Floats:
        """The smallest amounts of the task on any node, for limits: GPU memory is the smallest share of the largest GPU."""
        number = int(self.session.shape[task])
        found = self._limit.get(number)
        if found is None:
            shape = self.session.snapshot.shapes[number]
            found = self._limit[number] = shape_amounts(shape, self.most_memory, self._claimed(shape))
        return found

    def placed(self, task: int, node: int) -> Floats:
        """What the task holds, or would hold, on this node."""
        number = int(self.session.shape[task])
        shape = self.session.snapshot.shapes[number]
        devices = shape.devices
        if devices is None or not devices.memory or node < 0:
            return self.pending(task)
        found = self._placed.get((number, node))
        if found is None:
            found = self.pending(task).copy()
            found[GPU] = devices.count * gpu_portion(devices.memory, int(self.memory[node])) + self._claimed(shape)
            self._placed[number, node] = found
        return found

    def _claimed(self, shape: Shape) -> float:
        """GPUs by dynamic claims."""
        return float(sum(self.claimed_gpus(shape.namespace, claim) for _, claim in shape.claims))

    def claimed_gpus(self, namespace: str, claim: str) -> int:
        """GPUs that one claim asks for."""
        manifest = self._claims.get((namespace, claim))
        return _devices_asked(manifest) if manifest else 0

    def sliced_gpus(self) -> dict[str, int]:
        """GPUs that drivers publish for each node."""
        found: dict[str, int] = {}
        for _, manifest in sorted(self.session.snapshot.objects.get("ResourceSlice", {}).items()):
            spec = manifest.get("spec") or {}
            node = spec.get("nodeName")
            if node and spec.get("driver") in GPU_CLASSES:
                found[node] = found.get(node, 0) + len(spec.get("devices") or ())
        return found


def wants_gpu(session: Session, task: int) -> bool:
    """Whether the task asks for a GPU in any form: whole, a fraction, memory, or by a claim."""
    devices = session.snapshot.shapes[int(session.shape[task])].devices
    return bool(session.shared(KaiAmounts).pending(task)[GPU] > 0 or (devices is not None and (devices.fraction or devices.memory)))


def _total(nodes: Sequence[NodeSpec]) -> Floats:
    out = np.zeros(len(RESOURCES))
    for node in nodes:
        if node_is_usable(node):
            out += node_amounts(node)
    return out


def _devices_asked(claim: Mapping[str, Any]) -> int:
    total = 0
    for request in ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ():
        exactly = request.get("exactly") or request
        if exactly.get("deviceClassName") in GPU_CLASSES:
            total += int(exactly.get("count") or 1)
    return total
