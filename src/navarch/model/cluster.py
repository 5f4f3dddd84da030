"""The cluster in columns: one mutable table set that plan, the live cache and the simulator write, and that every cycle snapshots.

Each put or remove touches the rows it concerns and nothing else. A put replaces: it takes the old figures away and adds the
new ones, so any order of events ends in the same figures. It takes no scheduling decision.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from navarch.model.resources import ResourceSpace
from navarch.model.snapshot import Snapshot
from navarch.model.spec import (
    DisruptionBudgetSpec,
    JobSpec,
    NamespaceSpec,
    NodeSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    Shape,
    TaskSpec,
)
from navarch.model.status import IS_TERMINAL, ON_NODE, TaskStatus
from navarch.model.tables.identities import IdentityTable
from navarch.model.tables.incremental_copy import SnapshotColumns
from navarch.model.tables.jobs import JobTable
from navarch.model.tables.nodes import NodeTable
from navarch.model.tables.shapes import ShapeTable
from navarch.model.tables.tasks import TaskTable, check_numbers

TOGETHER = 16
"""Pods that change together are moved in columns from so many on."""


class Cluster:
    def __init__(self) -> None:
        self.space = ResourceSpace()
        self.shapes = ShapeTable(self.space)
        self.nodes = NodeTable(self.space)
        self.tasks = TaskTable()
        self.jobs = JobTable(self.space)
        self.queues: dict[str, QueueSpec] = {}
        self.priority_classes: dict[str, PriorityClassSpec] = {}
        self.budgets: dict[tuple[str, str], DisruptionBudgetSpec] = {}
        self.quotas: dict[tuple[str, str], QuotaSpec] = {}
        self.namespaces: dict[str, NamespaceSpec] = {}
        self.objects: dict[str, dict[tuple[str, str], Any]] = {}
        """Kinds that only some plugins read (volumes, claims, topologies): kind -> (namespace, name) -> value."""
        self.versions: dict[str, int] = {}
        """Changes of each kind of `objects`, for caches that outlive a cycle."""
        self.identities = IdentityTable()
        self.memo: dict[Hashable, Any] = {}
        """What static node functions computed, kept across cycles (`engine/placement/static_cache.py`)."""
        self._order: tuple[tuple[int, str], np.ndarray[Any, Any], list[str]] | None = None
        self._specs: tuple[tuple[int, str], list[NodeSpec]] | None = None
        self._node_rows: tuple[np.ndarray[Any, Any], int, np.ndarray[Any, np.dtype[np.int32]]] | None = None
        self._shapes: tuple[tuple[int, int], ShapeColumns] | None = None
        self._held_objects: dict[str, tuple[int, dict[tuple[str, str], Any]]] = {}
        self._copies = SnapshotColumns()
        self._snapshots = 0

    # nodes

    def put_node(self, spec: NodeSpec) -> None:
        self.nodes.put(spec)

    def remove_node(self, name: str) -> None:
        self.nodes.remove(name)

    # tasks

    def put_task(self, spec: TaskSpec) -> None:
        """Add or replace a pod. A finished pod holds nothing but still counts in its job."""
        check_numbers(spec)
        known = self.tasks.rows.of.get(spec.uid)
        if known is not None:
            before = self.tasks.specs[known]
            assert before is not None
            if _same_apart_from_status(before, spec):
                self._restate(known, before, spec)
                return
            self.remove_task(spec.uid)
        shape = self.shapes.acquire(spec.shape)
        request = self.shapes.request[: len(self.space), shape]
        node = -1
        if _holds_node(spec):
            node = self.nodes.row_for(spec.node)
            releasing = spec.status == TaskStatus.RELEASING
            self.nodes.occupy(node, request, spec.shape.footprint, 1, releasing=releasing)
        job = self.jobs.row_for(spec.job) if spec.job else -1
        row = self.tasks.add(spec, shape=shape, job=job, node=node, labels=self.identities.acquire(spec))
        if job >= 0:
            self.jobs.count(job, row, spec.status, self.shapes.charge[: len(self.space), shape], self.shapes.best_effort[shape], 1)

    def add_tasks(self, specs: Sequence[TaskSpec]) -> None:
        """Add pods that the cluster does not have, in their order. The result is that of `put_task` for each."""
        for spec in specs:
            check_numbers(spec)
        numbers: dict[int, int] = {}
        for spec in specs:  # equal pods share one Shape object, and hashing it anew costs more than the rest of a row
            known = numbers.get(id(spec.shape))
            if known is None:
                numbers[id(spec.shape)] = self.shapes.acquire(spec.shape)
            else:
                self.shapes.uses[known] += 1
        count = len(specs)
        shapes = np.fromiter((numbers[id(spec.shape)] for spec in specs), dtype=np.int32, count=count)
        requests = self.shapes.request[: len(self.space)].take(shapes, axis=1)
        status = np.fromiter((spec.status for spec in specs), dtype=np.int64, count=count)
        node_of = self.nodes.row_for
        on_node = [node_of(spec.node) if spec.node and _HOLDS_NODE[spec.status] else -1 for spec in specs]
        nodes = np.array(on_node, dtype=np.int32)
        placed = np.flatnonzero(nodes >= 0)
        if len(placed):
            footprints = np.array([specs[i].shape.footprint for i in placed.tolist()], dtype=np.int64).T
            self.nodes.occupy_all(nodes[placed], requests[:, placed], footprints, status[placed] == TaskStatus.RELEASING)
        jobs = np.fromiter((self.jobs.row_for(spec.job) if spec.job else -1 for spec in specs), dtype=np.int32, count=count)
        labels = np.array(self.identities.acquire_all(specs), dtype=np.int32)
        rows = self.tasks.add_all(specs, shapes=shapes, jobs=jobs, nodes=nodes, labels=labels)
        members = np.flatnonzero(jobs >= 0)
        if len(members):
            best_effort = np.array(self.shapes.best_effort, dtype=bool)[shapes[members]]
            charges = self.shapes.charge[: len(self.space)].take(shapes[members], axis=1)
            self.jobs.count_all(jobs[members], rows[members], status[members], charges, best_effort)

    def put_tasks(self, specs: Sequence[TaskSpec]) -> None:
        """Add or replace pods, each once. The result is that of `put_task` for each; many that the cluster has, and whose status or
        node alone changes, are moved together."""
        rows: list[int] = []
        moved: list[TaskSpec] = []
        if len(specs) >= TOGETHER:
            for spec in specs:
                row = self.tasks.rows.of.get(spec.uid)
                before = None if row is None else self.tasks.specs[row]
                if row is None or before is None or not _same_apart_from_status(before, spec) or before.labels != spec.labels:
                    self.put_task(spec)
                else:
                    rows.append(row)
                    moved.append(spec)
        else:
            for spec in specs:
                self.put_task(spec)
        if moved:
            self._restate_all(np.array(rows, dtype=np.int32), moved)

    def _restate_all(self, rows: np.ndarray[Any, np.dtype[np.int32]], specs: Sequence[TaskSpec]) -> None:
        """As `_restate` for many pods."""
        count, size, tasks = len(specs), len(self.space), self.tasks
        shapes, jobs, was = tasks.shape[rows], tasks.job[rows], tasks.node[rows]
        before = tasks.status[rows].astype(np.int64)
        after = np.fromiter((spec.status for spec in specs), dtype=np.int64, count=count)
        on_node = (self.nodes.row_for(spec.node) if _holds_node(spec) else -1 for spec in specs)
        node = np.fromiter(on_node, dtype=np.int32, count=count)
        left, leaves = before == TaskStatus.RELEASING, after == TaskStatus.RELEASING
        requests = self.shapes.request[:size].take(shapes, axis=1)
        footprints = np.array([spec.shape.footprint for spec in specs], dtype=np.int64).T
        differs = (was != node) | (left != leaves)
        for where, releasing, sign in ((node, leaves, 1), (was, left, -1)):
            of = np.flatnonzero(differs & (where >= 0))
            if len(of):
                self.nodes.occupy_all(where[of], requests[:, of], footprints[:, of], releasing[of], sign)
        of = np.flatnonzero((jobs >= 0) & (before != after))
        if len(of):
            charges = self.shapes.charge[:size].take(shapes[of], axis=1)
            best_effort = np.array(self.shapes.best_effort, dtype=bool)[shapes[of]]
            self.jobs.move_all(jobs[of], before[of], after[of], charges, best_effort)
        tasks.restate_all(rows, specs, node)

    def _restate(self, row: int, before: TaskSpec, spec: TaskSpec) -> None:
        """The fast path: only the pod's status or node changed. It moves the figures and keeps the rest, at half the cost."""
        shape, job, was = int(self.tasks.shape[row]), int(self.tasks.job[row]), int(self.tasks.node[row])
        request = self.shapes.request[: len(self.space), shape]
        node = self.nodes.row_for(spec.node) if _holds_node(spec) else -1
        left, leaves = before.status == TaskStatus.RELEASING, spec.status == TaskStatus.RELEASING
        if (was, left) != (node, leaves):
            if node >= 0:
                self.nodes.occupy(node, request, spec.shape.footprint, 1, releasing=leaves)
            if was >= 0:
                self.nodes.occupy(was, request, spec.shape.footprint, -1, releasing=left)
        if job >= 0 and before.status != spec.status:
            charge = self.shapes.charge[: len(self.space), shape]
            self.jobs.move(job, before.status, spec.status, charge, self.shapes.best_effort[shape])
        self.tasks.restate(row, spec, node)
        if before.labels != spec.labels:
            self.identities.release(int(self.tasks.labels[row]))
            self.tasks.labels[row] = self.identities.acquire(spec)

    def remove_task(self, uid: str) -> None:
        row = self.tasks.rows.of.get(uid)
        if row is None:
            return
        spec = self.tasks.specs[row]
        assert spec is not None
        shape, node, job = int(self.tasks.shape[row]), int(self.tasks.node[row]), int(self.tasks.job[row])
        request = self.shapes.request[: len(self.space), shape]
        if node >= 0:
            releasing = spec.status == TaskStatus.RELEASING
            self.nodes.occupy(node, request, spec.shape.footprint, -1, releasing=releasing)
        self.identities.release(int(self.tasks.labels[row]))
        self.tasks.drop(uid)
        if job >= 0:
            self.jobs.count(job, row, spec.status, self.shapes.charge[: len(self.space), shape], self.shapes.best_effort[shape], -1)
        self.shapes.release(shape)

    def task(self, uid: str) -> TaskSpec | None:
        row = self.tasks.rows.of.get(uid)
        return None if row is None else self.tasks.specs[row]

    def first_task(self, job: str) -> TaskSpec | None:
        """The task of a job that arrived first; None: it has none."""
        row = self.jobs.rows.of.get(job)
        task = None if row is None else next(iter(self.jobs.tasks[row]), None)
        return None if task is None else self.tasks.specs[task]

    def _renumber_identities(self) -> None:
        """Forget label sets that no pod has. Numbers change, so all that is memoised by number is dropped. Existing snapshots keep
        their own list."""
        top = self.tasks.rows.top
        used = np.unique(self.tasks.labels[:top][self.tasks.alive[:top]])
        self.tasks.labels[:top] = self.identities.renumber(used)[self.tasks.labels[:top]]
        self.tasks.touched.update(range(top))
        self.memo.clear()

    # jobs, queues and the rest

    def put_job(self, spec: JobSpec) -> None:
        if spec.min_resources:
            self.space.learn(spec.min_resources)
        self.jobs.put(spec)

    def remove_job(self, key: str) -> None:
        self.jobs.remove(key)

    def job(self, key: str) -> JobSpec | None:
        row = self.jobs.rows.of.get(key)
        return None if row is None else self.jobs.specs[row]

    def put_queue(self, spec: QueueSpec) -> None:
        for requests in (spec.capability, spec.deserved, spec.guarantee):
            if requests:
                self.space.learn(requests, trusted=True)
        self.queues[spec.name] = spec

    def remove_queue(self, name: str) -> None:
        self.queues.pop(name, None)

    def put_priority_class(self, spec: PriorityClassSpec) -> None:
        self.priority_classes[spec.name] = spec

    def remove_priority_class(self, name: str) -> None:
        self.priority_classes.pop(name, None)

    def put_budget(self, spec: DisruptionBudgetSpec) -> None:
        self.budgets[spec.namespace, spec.name] = spec

    def remove_budget(self, namespace: str, name: str) -> None:
        self.budgets.pop((namespace, name), None)

    def put_quota(self, spec: QuotaSpec) -> None:
        self.space.learn(spec.hard)
        self.quotas[spec.namespace, spec.name] = spec

    def remove_quota(self, namespace: str, name: str) -> None:
        self.quotas.pop((namespace, name), None)

    def put_namespace(self, spec: NamespaceSpec) -> None:
        self.namespaces[spec.name] = spec

    def remove_namespace(self, name: str) -> None:
        self.namespaces.pop(name, None)

    def put_object(self, kind: str, namespace: str, name: str, value: Any) -> None:
        self.objects.setdefault(kind, {})[namespace, name] = value
        self.versions[kind] = self.versions.get(kind, 0) + 1

    def remove_object(self, kind: str, namespace: str, name: str) -> None:
        if self.objects.get(kind, {}).pop((namespace, name), None) is not None:
            self.versions[kind] = self.versions.get(kind, 0) + 1

    # snapshot

    def snapshot_with_held(self, node_order: str = "name") -> Snapshot:
        """A snapshot in which jobs that are held back from cycles take part, for readers that list every job that waits."""
        held, self.jobs.held = self.jobs.held, np.zeros_like(self.jobs.held)
        try:
            return self.snapshot(node_order)
        finally:
            self.jobs.held = held

    def snapshot(self, node_order: str = "name", *, instead_of: Snapshot | None = None) -> Snapshot:
        """An isolated copy for one cycle: arrays are copied, immutable specs are shared.

        Node rows of the snapshot are in `node_order`: by "name", so that no decision depends on the order of arrival, or
        as "listed". `instead_of`: the previous snapshot, if it is out of use. Its arrays are reused, and only task and job rows that
        changed since are copied. Cost: bench/decide, "snapshot"."""
        if self.identities.has_many_unused:
            self._renumber_identities()
        self.jobs.fit_space()
        self.nodes.fit_space()
        size = len(self.space)
        order, names = self._node_order(node_order)
        node_rows = self._rows_in(order)
        session = None
        if instead_of is None or instead_of.space is not self.space or instead_of.number != self._snapshots:
            self._copies = SnapshotColumns()
        else:
            self.jobs.touched.update(instead_of.jobs.left_out, instead_of.jobs.sitting_out)
            session, instead_of.session = instead_of.session, None
        self._snapshots += 1
        shapes = self._shape_columns(size)
        specs, version = self._nodes_in(order, node_order), (self.nodes.version, node_order)
        nodes = self._copies.nodes.columns(self.nodes, order, node_rows, size, names, specs, version)
        return Snapshot(
            resource_names=tuple(self.space.names),
            space=self.space,
            nodes=nodes,
            tasks=self._copies.of_tasks(self.tasks, node_rows),
            jobs=self._copies.of_jobs(self.jobs),
            shapes=shapes.specs,
            shape_request=shapes.request,
            shape_charge=shapes.charge if self.shapes.sharing_devices else shapes.request,
            shape_best_effort=shapes.best_effort,
            shape_node_rules=shapes.node_rules,
            shares_devices=bool(self.shapes.sharing_devices),
            queues=dict(self.queues),
            priority_classes=dict(self.priority_classes),
            budgets=dict(self.budgets),
            quotas=dict(self.quotas),
            namespaces=dict(self.namespaces),
            objects={kind: self._objects_of(kind) for kind in self.objects},
            versions=dict(self.versions),
            identities=self.identities.pairs,
            memo=self.memo,
            number=self._snapshots,
            session=session,
        )

    def _shape_columns(self, size: int) -> ShapeColumns:
        """The shapes with this many resources. The same object while no shape is added; read only."""
        key = (self.shapes.changes, size)
        if self._shapes is None or self._shapes[0] != key:
            shapes, count = self.shapes, len(self.shapes.specs)
            request, charge = (_fitted(each, size, count) for each in (shapes.request, shapes.charge))
            self._shapes = key, ShapeColumns(list(shapes.specs), request, charge, shapes.best_effort.copy(), shapes.node_rules.copy())
        return self._shapes[1]

    def _rows_in(self, order: np.ndarray[Any, np.dtype[np.intp]]) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The place of each row of the node table in this order, -1 for none, with a last entry for tasks without a node. The same
        array while the order stays."""
        top = self.nodes.rows.top
        if self._node_rows is None or self._node_rows[0] is not order or self._node_rows[1] != top:
            rows = np.full(max(top, 1) + 1, -1, dtype=np.int32)
            rows[order] = np.arange(len(order), dtype=np.int32)
            self._node_rows = order, top, rows
        return self._node_rows[2]

    def _objects_of(self, kind: str) -> dict[tuple[str, str], Any]:
        """The objects of a kind. The same dict while none of them changes; read only."""
        version = self.versions.get(kind, 0)
        held = self._held_objects.get(kind)
        if held is None or held[0] != version:
            held = self._held_objects[kind] = version, dict(self.objects[kind])
        return held[1]

    def _nodes_in(self, order: np.ndarray[Any, np.dtype[np.intp]], node_order: str) -> list[NodeSpec]:
        """Specs in this order. The same list while no node changes; read only."""
        key = (self.nodes.changes, node_order)
        if self._specs is None or self._specs[0] != key:
            specs = self.nodes.specs
            self._specs = key, [spec for row in order.tolist() if (spec := specs[row]) is not None]
        return self._specs[1]

    def _node_order(self, node_order: str) -> tuple[np.ndarray[Any, np.dtype[np.intp]], list[str]]:
        """Rows of existing nodes in this order, and their names. Cached while no node is added or removed."""
        key = (self.nodes.version, node_order)
        if self._order is not None and self._order[0] == key:
            return self._order[1:]
        alive = np.flatnonzero(self.nodes.alive[: self.nodes.rows.top]).tolist()
        by = self.nodes.serial if node_order == "listed" else self.nodes.names
        alive.sort(key=by.__getitem__)
        order = np.array(alive, dtype=np.intp)
        self._order = (key, order, [self.nodes.names[row] for row in alive])
        return self._order[1:]


class ShapeColumns(NamedTuple):
    """What a snapshot has of the shapes."""

    specs: list[Shape]
    request: np.ndarray[Any, Any]
    charge: np.ndarray[Any, Any]
    best_effort: list[bool]
    node_rules: list[Shape]


_HOLDS_NODE = [bool(ON_NODE[status] and not IS_TERMINAL[status]) for status in TaskStatus]
"""By status: whether a pod that has a node holds a part of it."""


def _holds_node(spec: TaskSpec) -> bool:
    return bool(spec.node and _HOLDS_NODE[spec.status])


def _same_apart_from_status(a: TaskSpec, b: TaskSpec) -> bool:
    """Whether two versions of a pod have the same shape, job and name. Labels may differ: a pod gets topology labels of its node
    when it is bound."""
    return (a.shape is b.shape or a.shape == b.shape) and a.job == b.job and a.name == b.name and a.namespace == b.namespace


def _fitted(array: np.ndarray[Any, Any], resources: int, columns: int) -> np.ndarray[Any, Any]:
    """A read-only copy with exactly this many resources; a resource that was learned later has zeros."""
    out = np.zeros((resources, columns), dtype=array.dtype)
    have = min(resources, array.shape[0])
    out[:have] = array[:have, :columns]
    out.flags.writeable = False
    return out
