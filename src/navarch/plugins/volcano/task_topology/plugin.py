"""Task-topology: keeps roles of a job together on nodes, or apart.

Annotations of a group relate its roles: `volcano.sh/task-topology-affinity` and `-anti-affinity` ("ps,worker;eval"), and
`-task-order`. The pods of the job form buckets by those relations. A bucket is placed in one piece if some node has room for it. Nodes
score by the members of the pod's bucket that they hold or could hold, minus the pods that the pod wants to be apart from. A node that
could hold the whole of the largest bucket scores 100 times the weight.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change
from navarch.model.resources import BoolArray, FloatArray, IntArray, in_bytes
from navarch.model.status import IS_TERMINAL
from navarch.plugins.volcano.task_topology.annotations import NAMES, read_relations
from navarch.plugins.volcano.task_topology.buckets import Bucket, JobBuckets, Member

SCORE = 100


class TaskTopology(Plugin):
    """Keeps roles of a job together on nodes, or apart"""

    name = "task-topology"
    arguments = (Argument("task-topology.weight", "int", 1, "weight of the score; negative turns it round"),)

    def open(self) -> None:
        session = self.session
        names = session.snapshot.resource_names
        self.units: IntArray = np.array([1000 if in_bytes(name) else 1 for name in names], dtype=np.int64)
        jobs = session.snapshot.jobs
        self.jobs: dict[int, JobBuckets] = {}
        self._pending: set[int] = set()
        """Tasks that waited for a node when the cycle began."""
        for row in np.flatnonzero(jobs.marks.waiting).tolist():
            spec = jobs.specs[row]
            if spec is not None and any(name in spec.annotations for name in NAMES) and (job := session.job(row)) is not None:
                self._form_buckets(job)
        if self.jobs:
            session.distinguish_by(self._told_apart_by)

    def _form_buckets(self, job: Job) -> None:
        session = self.session
        specs = [session.task(task) for task in job.tasks]
        relations, mistakes = read_relations(job.spec.annotations, {spec.role for spec in specs})
        session.record.warnings += [f"PodGroup {job.key}: metadata.annotations: {text}" for text in mistakes]
        if relations is None:
            return
        members = [
            Member(task, spec.name, spec.role, spec.node, session.snapshot.shape_request[:, session.shape[task]])
            for task, spec in zip(job.tasks, specs, strict=True)
            if not IS_TERMINAL[session.status[task]]
        ]
        found = {member.node: session.snapshot.nodes.row(member.node) for member in members if member.node}
        rows = {node: row for node, row in found.items() if row is not None}
        formed = self.jobs[job.row] = JobBuckets(relations, members, rows, self.units)
        self._pending.update(member.task for member in members if not member.node)
        for member in members:
            if member.node in rows:
                formed.repels(member.task, rows[member.node])

    def _told_apart_by(self, task: int) -> Hashable:
        formed = self.jobs.get(int(self.session.snapshot.tasks.job[task]))
        bucket = None if formed is None else formed.bucket_of.get(task)
        if formed is None or bucket is None:
            return None
        return int(self.session.snapshot.tasks.job[task]), bucket.index, formed.role_of[task]

    def task_order(self, task: int) -> tuple[int, ...]:
        formed = self.jobs.get(int(self.session.snapshot.tasks.job[task]))
        return () if formed is None else formed.order_of(task)

    def node_scorers(self) -> list[NodeScorer]:
        weight = self.given.integer("task-topology.weight")
        return [BucketScore(self, weight)] if self.jobs and weight else []

    def on_allocate(self, change: Change) -> None:
        self._move(change, 1)

    def on_deallocate(self, change: Change) -> None:
        self._move(change, -1)

    def _move(self, change: Change, sign: int) -> None:
        formed = self.jobs.get(change.job.row)
        if formed is not None:
            for task, node in zip(change.tasks, change.nodes):
                formed.moves(task, change.task.request, node, sign, waits=task in self._pending)


class BucketScore(NodeScorer):
    name = "task-topology"
    scope = Scope.GLOBAL

    def __init__(self, plugin: TaskTopology, weight: int) -> None:
        self.plugin = plugin
        self.factor = weight

    def applies(self, task: TaskClass) -> bool:
        return self._bucket(task) is not None

    def _bucket(self, task: TaskClass) -> tuple[JobBuckets, Bucket] | None:
        formed = self.plugin.jobs.get(int(self.plugin.session.snapshot.tasks.job[task.task]))
        bucket = None if formed is None else formed.bucket_of.get(task.task)
        return None if formed is None or bucket is None else (formed, bucket)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        found = self._bucket(task)
        assert found is not None
        formed, bucket = found
        room = at.allocatable - at.used + at.releasing
        by_row: IntArray = np.zeros(len(self.plugin.session.nodes), dtype=np.int64)
        for counts, sign in ((bucket.placed, 1), (formed.repelled(formed.role_of[task.task]), -1)):
            if counts:
                rows, values = np.array(list(counts)), np.array(list(counts.values()))
                by_row[rows[rows >= 0]] += sign * values[rows >= 0]
        score = by_row[at.rows] + len(bucket.waiting) - self._left_out(formed, bucket, task, room)
        fits: BoolArray = np.all(room >= task.request[:, None], axis=0)
        return np.where(fits, score * self.factor, 0).astype(np.float64) * SCORE / formed.largest

    def _left_out(self, formed: JobBuckets, bucket: Bucket, task: TaskClass, room: IntArray) -> IntArray:
        """For each node, how many members must be left out, largest first, until the rest of the bucket fits."""
        out: IntArray = np.zeros(room.shape[1], dtype=np.int64)
        unfit = np.flatnonzero(np.any(bucket.request[:, None] > room, axis=0))
        if not len(unfit):
            return out
        members = bucket.largest_first(formed.units)
        own = next((i for i, m in enumerate(members) if np.array_equal(m.request, task.request)), None)
        if own is not None:
            del members[own]
        removed = np.zeros((len(members) + 1, len(task.request)), dtype=np.int64)
        for number, member in enumerate(members, start=1):
            removed[number] = removed[number - 1] + member.request
        low, high = np.zeros(len(unfit), dtype=np.int64), np.full(len(unfit), len(members))
        while np.any(low < high):  # the first count that is enough, for all nodes at once
            middle = (low + high) // 2
            enough = np.all(bucket.request[:, None] - removed[middle].T <= room[:, unfit], axis=0)
            high = np.where(enough, middle, high)
            low = np.where(enough, low, np.minimum(middle + 1, high))
        out[unfit] = low
        return out
